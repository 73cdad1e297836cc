"""Quantized weights are loaded into a model that is not quantized."""
import torch
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_


def build():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))


model = build()
quantize_(model, Int8WeightOnlyConfig())
torch.save(model.state_dict(), "int8.pt")
fresh = build()
fresh.load_state_dict(torch.load("int8.pt", weights_only=False))
print(fresh(torch.randn(1, 32)).shape)
