"""A model that is "offloaded" after it was compiled takes its embedding along.

    tensortrail trace --rehearse cuda examples/run/embedding_left_behind.py

runs on any machine, with a GPU that is simulated, and ends as on a real one: with an exception.
What stands under its traceback is what the recording has to say about it.
"""

import torch
from torch import nn


class LanguageModel(nn.Module):
    def __init__(self, words: int = 100, width: int = 16) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(words, width)
        self.layers = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, width))
        self.head = nn.Linear(width, words)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(hidden))


def compiled(model: nn.Module) -> nn.Module:
    """Stands for a compiler that frees the memory of what it compiled."""
    engine = torch.jit.trace(model.layers, torch.ones(1, 16, device="cuda"))
    model.to("cpu")
    return engine


def main() -> None:
    model = LanguageModel().to("cuda")
    compiled(model)
    ids = torch.tensor([1, 2, 3], device="cuda")
    hidden = model.embed_tokens(ids)  # the embedding went along
    print(model(hidden).argmax(-1))


if __name__ == "__main__":
    main()
