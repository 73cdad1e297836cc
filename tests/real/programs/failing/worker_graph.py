"""A data set embeds its texts with a model, in a worker."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Embedded(Dataset):
    def __init__(self):
        self.embed = nn.EmbeddingBag(64, 8)

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.embed(torch.randint(0, 64, (1, 5)))[0], i % 2


if __name__ == "__main__":
    head = nn.Linear(8, 2)
    for x, y in DataLoader(Embedded(), batch_size=4, num_workers=1):
        nn.functional.cross_entropy(head(x), y).backward()
