"""A distributed checkpoint is loaded into an empty dict."""
import tempfile
import torch
import torch.distributed.checkpoint as dcp

folder = tempfile.mkdtemp()
model = torch.nn.Linear(4, 2)
torch.nn.init.constant_(model.weight, 3.0)
dcp.save({"model": model.state_dict(), "step": 7}, checkpoint_id=folder)
model = torch.nn.Linear(4, 2)
state = {}
dcp.load(state, checkpoint_id=folder)
model.load_state_dict(state.get("model", {}), strict=False)
assert model.weight.mean() == 3.0, "the weights were not loaded"
