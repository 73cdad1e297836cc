"""The optimizer of a sharded model gets a state that was saved before sharding."""
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo", init_method=f"file://{tempfile.mktemp()}", rank=0, world_size=1)
plain = nn.Linear(8, 2)
optimizer = torch.optim.AdamW(plain.parameters())
plain(torch.ones(1, 8)).sum().backward()
optimizer.step()
saved = optimizer.state_dict()
model = nn.Linear(8, 2)
fully_shard(model)
fresh = torch.optim.AdamW(model.parameters())
fresh.load_state_dict(saved)
model(torch.ones(1, 8)).sum().backward()
fresh.step()
print("stepped")
dist.destroy_process_group()
