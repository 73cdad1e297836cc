"""A training script for a GPU: autocast, scaler, workers, pinned batches, save and resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HALF = torch.float16 if DEVICE.type == "cuda" else torch.bfloat16
CHECKPOINT = Path("checkpoint.pt")


class Training:
    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = [torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 3)]
        self.model = torch.nn.Sequential(*layers).to(DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.scaler = torch.amp.GradScaler(DEVICE.type)
        self.parts = {"model": self.model, "optimizer": self.optimizer, "scaler": self.scaler}

    def save(self) -> None:
        torch.save({name: part.state_dict() for name, part in self.parts.items()}, CHECKPOINT)

    def resume(self) -> None:
        state = torch.load(CHECKPOINT, map_location=DEVICE)
        for name, part in self.parts.items():
            part.load_state_dict(state[name])

    def epoch(self, batches: Any) -> float:
        loss = torch.zeros(())
        for features, labels in batches:
            assert features.is_pinned() == (DEVICE.type == "cuda")
            features = features.to(DEVICE, non_blocking=True)
            labels = labels.to(DEVICE, non_blocking=True)
            with torch.autocast(DEVICE.type, dtype=HALF):
                scores = self.model(features)
                assert scores.dtype == HALF
                loss = torch.nn.functional.cross_entropy(scores, labels)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad(set_to_none=True)
        return float(loss)


def main() -> None:
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(32, 8), torch.randint(0, 3, (32,)))
    batches = DataLoader(data, batch_size=8, num_workers=2, pin_memory=DEVICE.type == "cuda")
    training = Training()
    training.epoch(batches)
    training.save()
    loss = training.epoch(batches)
    again = Training()
    again.resume()
    assert again.epoch(batches) == loss
    print("loss", loss, "on", next(again.model.parameters()).device)


if __name__ == "__main__":
    main()
