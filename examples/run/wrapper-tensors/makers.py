"""What the doctor calls for a new tensor."""

import torch
from packed import Packed


def packed():
    return Packed(torch.randn(64, 64))
