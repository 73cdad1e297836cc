"""Saves a wrapper tensor in the background."""

import torch
import torch.distributed.checkpoint as dcp
from packed import Packed

layer = torch.nn.Linear(64, 64)
layer.weight = torch.nn.Parameter(Packed(torch.randn(64, 64)), requires_grad=False)
saved = dcp.async_save(layer.state_dict(), checkpoint_id="saved", no_dist=True)
saved.result()
