"""The weights of the tests as a model of transformers, to be loaded by `from_pretrained`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from tests.doctor.checkpoint.written import LAYERS


class Config(PreTrainedConfig):  # type: ignore[misc]
    model_type = "damaged"


class Layer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.Linear(8, 8)
        self.norm = torch.nn.RMSNorm(8)


class Model(PreTrainedModel):  # type: ignore[misc]
    config_class = Config

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.embed = torch.nn.Embedding(16, 8)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = torch.nn.Linear(8, 16, bias=False)
        self.post_init()


def loading_info(folder: Path) -> dict[str, Any]:
    """What a load says of names; it raises what the load raises."""
    _, told = Model.from_pretrained(folder, output_loading_info=True)
    return dict(told)
