"""Layers and losses of torch.nn, each with what it takes: subjects of `tiny_models.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

Layer = tuple[str, tuple[Any, ...], tuple[torch.Tensor, ...]]
ACTIVATIONS = (
    "CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "SiLU", "Sigmoid", "Softmin",
    "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Softmax", "LogSoftmax", "Identity",
    "Dropout", "AlphaDropout", "FeatureAlphaDropout", "Flatten",
)  # fmt: skip
LOSSES = ("BCELoss", "BCEWithLogitsLoss", "HuberLoss", "KLDivLoss", "L1Loss", "MSELoss",
          "MultiLabelSoftMarginLoss", "PoissonNLLLoss", "SmoothL1Loss",
          "SoftMarginLoss")  # fmt: skip
OF_IMAGES = {
    "Conv2d": (4, 4, 3), "LazyConv2d": (4, 3), "AvgPool2d": (2,), "MaxPool2d": (2,),
    "LPPool2d": (2, 2), "AdaptiveAvgPool2d": (2,), "AdaptiveMaxPool2d": (2,),
    "FractionalMaxPool2d": (2, 3), "GroupNorm": (2, 4), "LocalResponseNorm": (2,),
    "LayerNorm": ((4, 8, 8),), "RMSNorm": ((8,),), "ChannelShuffle": (2,), "PixelShuffle": (2,),
    "PixelUnshuffle": (2,), "ReflectionPad2d": (1,), "ReplicationPad2d": (1,),
    "ZeroPad2d": (1,), "CircularPad2d": (1,), "ConstantPad2d": (1, 0.5), "Upsample": (16,),
    "Unfold": (2,), "Dropout2d": (), "Softmax2d": (), "UpsamplingNearest2d": (16,),
    "UpsamplingBilinear2d": (16,), "SyncBatchNorm": (4,), "LazyBatchNorm2d": (),
}  # fmt: skip


def layers() -> Iterator[tuple[str, tuple[Any, ...], tuple[torch.Tensor, ...]]]:
    """The name of a class, what it is made with, and what it is called with."""
    rows, images = torch.rand(2, 4, 8), torch.rand(2, 4, 8, 8)
    classes, chances = torch.tensor([0, 2]), torch.rand(2, 4).softmax(-1)
    yield from ((name, (), (rows,)) for name in ACTIVATIONS)
    yield from ((name, (), (chances, chances.flip(0))) for name in LOSSES)
    yield from ((name, made_with, (images,)) for name, made_with in OF_IMAGES.items())
    yield from _of_rows(rows)
    yield from _of_volumes(torch.rand(1, 2, 4, 4, 4))
    signs = torch.tensor([1.0, -1.0])
    yield "CrossEntropyLoss", (), (chances, classes)
    yield "NLLLoss", (), (chances.log(), classes)
    yield "MultiMarginLoss", (), (chances, classes)
    yield "MultiLabelMarginLoss", (), (chances, torch.tensor([[0, 1, -1, 0], [2, -1, 0, 0]]))
    yield "CosineEmbeddingLoss", (), (chances, chances, signs)
    yield "MarginRankingLoss", (), (signs, signs, signs)
    yield "HingeEmbeddingLoss", (), (signs, signs)
    yield "TripletMarginLoss", (), (chances, chances, chances)
    yield "TripletMarginWithDistanceLoss", (), (chances, chances, chances)
    yield "GaussianNLLLoss", (), (chances, chances, chances)
    lengths = (torch.tensor([4]), torch.tensor([2]))
    yield "CTCLoss", (), (torch.rand(4, 1, 5).log_softmax(-1), torch.tensor([[1, 2]]), *lengths)


def _of_rows(rows: torch.Tensor) -> Iterator[Layer]:
    flat, ids = rows[:, 0], torch.tensor([[1, 2], [0, 3]])
    for name, made_with in {
        "Linear": (8, 3), "LazyLinear": (3,), "Conv1d": (4, 4, 3), "ConvTranspose1d": (4, 4, 3),
        "AvgPool1d": (2,), "MaxPool1d": (2,), "AdaptiveAvgPool1d": (2,), "BatchNorm1d": (4,),
        "AdaptiveMaxPool1d": (2,), "LPPool1d": (2, 2), "InstanceNorm1d": (4,), "ZeroPad1d": (1,),
        "ReflectionPad1d": (1,), "ReplicationPad1d": (1,), "CircularPad1d": (1,), "GLU": (),
        "ConstantPad1d": (1, 0.5), "Dropout1d": (), "Threshold": (0.1, 0.0), "RNNCell": (8, 8),
        "Unflatten": (1, (2, 2)),
    }.items():  # fmt: skip
        yield name, made_with, (flat if name == "RNNCell" else rows,)
    yield "Bilinear", (8, 8, 3), (flat, flat)
    yield "CosineSimilarity", (), (flat, flat)
    yield "PairwiseDistance", (), (flat, flat)
    yield "Embedding", (5, 8), (ids,)
    yield "EmbeddingBag", (5, 8), (ids,)
    yield "TransformerDecoderLayer", (8, 2, 16), (rows, rows)
    yield "TransformerEncoder", (nn.TransformerEncoderLayer(8, 2, 16), 2), (rows,)
    yield "TransformerDecoder", (nn.TransformerDecoderLayer(8, 2, 16), 2), (rows, rows)
    yield "MaxUnpool1d", (2,), nn.MaxPool1d(2, return_indices=True)(rows)
    yield "Fold", ((4, 4), 2), (torch.rand(1, 8, 9),)


def _of_volumes(volumes: torch.Tensor) -> Iterator[Layer]:
    for name, made_with in {
        "Conv3d": (2, 2, 3), "ConvTranspose3d": (2, 2, 3), "AvgPool3d": (2,), "MaxPool3d": (2,),
        "AdaptiveAvgPool3d": (2,), "AdaptiveMaxPool3d": (2,), "BatchNorm3d": (2,),
        "InstanceNorm3d": (2,), "ZeroPad3d": (1,), "ReflectionPad3d": (1,),
        "ReplicationPad3d": (1,), "CircularPad3d": (1,), "ConstantPad3d": (1, 0.5),
        "Dropout3d": (), "FractionalMaxPool3d": (2, 2), "LPPool3d": (2, 2),
    }.items():  # fmt: skip
        yield name, made_with, (volumes,)
    yield "MaxUnpool3d", (2,), nn.MaxPool3d(2, return_indices=True)(volumes)
