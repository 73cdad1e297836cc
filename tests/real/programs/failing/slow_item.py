"""An item takes longer than the loader waits."""
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Slow(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(1.0 if index == 2 else 0)
        return torch.ones(2)


for batch in DataLoader(Slow(), 2, num_workers=1, timeout=0.3):
    print(batch.shape)
