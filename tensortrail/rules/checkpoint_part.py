"""The parts of a checkpoint that a rule may read."""

from __future__ import annotations

from enum import Enum


class Part(str, Enum):
    """What a rule needs to be there; its value is what a report calls it."""

    FILES = "weight files"
    SAFETENSORS = "safetensors files"
    TORCH = "torch files (.bin, .pt, .pth, .ckpt)"
    SHARDS = "shards"
    INDEX = "index"
    PICKLES = "pickles"
    RANKS = "distributed checkpoint"
    METADATA = "`.metadata` of a distributed checkpoint"
    PIECES = "pieces of a distributed checkpoint"
    ADAPTER = "adapter"
    PIPELINE = "pipeline"
    CONFIG = "config.json beside weights"
    VALUES = "values read (`--values`)"
    MANIFEST = "manifest verified (`--manifest verify`)"
    MODEL = "model to compare with (`--model`)"
