"""A checkpoint of a quantized weight that is written in the background."""

import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torchao.float8.float8_training_tensor import LinearMMConfig
from torchao.float8.fsdp_utils import WeightWithDynamicFloat8CastTensor

layer = nn.Linear(64, 64, bias=False)
values = torch.full((64, 64), 3.0)
cast = WeightWithDynamicFloat8CastTensor(values, LinearMMConfig(), torch.float8_e4m3fn)
layer.weight = nn.Parameter(cast)
dcp.async_save(layer.state_dict(), checkpoint_id="saved-later", no_dist=True).result()
