"""A distributed checkpoint is loaded into clones that nobody gives back to the model."""
import os
import tempfile

import torch
import torch.distributed.checkpoint as dcp
from torch import nn


def build(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))


def main():
    folder = os.path.join(tempfile.mkdtemp(), "checkpoint")
    trained = build(0)
    dcp.save(trained.state_dict(), checkpoint_id=folder)

    model = build(1)
    sd = {k: v.clone() for k, v in model.state_dict().items()}
    dcp.load(sd, checkpoint_id=folder)
    model.eval()
    x = torch.ones(1, 8)
    assert torch.equal(model(x), trained(x)), "the resumed model answers differently"


main()
