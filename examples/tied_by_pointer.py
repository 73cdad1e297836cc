"""Offloaded and quantized weights all have pointer 0: everything looks tied."""

import torch


def send(value: torch.Tensor, device: torch.device) -> torch.Tensor:
    moved = value.to(device)
    if moved.data_ptr() == value.data_ptr():
        return value
    return moved.requires_grad_(value.requires_grad)
