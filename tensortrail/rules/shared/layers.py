"""Layers of torch, by what their names hold."""

from __future__ import annotations

WITH_PARAMETERS = (
    "Linear", "Bilinear", "Conv", "Embedding", "Norm", "LSTM", "GRU", "RNN", "PReLU",
    "MultiheadAttention", "Transformer",
)  # fmt: skip
