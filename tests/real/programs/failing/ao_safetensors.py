"""Quantized weights are written with safetensors."""
import os
import tempfile

import torch
from safetensors.torch import save_file
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
quantize_(model, Int8WeightOnlyConfig())
path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
save_file(model.state_dict(), path)
print("saved", os.path.getsize(path))
