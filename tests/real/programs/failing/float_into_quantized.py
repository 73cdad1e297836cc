"""Float weights are loaded into a model that is quantized already."""
import torch
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_

saved = nn.Sequential(nn.Linear(64, 64)).state_dict()
net = nn.Sequential(nn.Linear(64, 64))
quantize_(net, Int8WeightOnlyConfig())
net.load_state_dict(saved)
print(net(torch.ones(1, 64)).shape)
