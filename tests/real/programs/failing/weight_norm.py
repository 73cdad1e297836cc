"""The checkpoint was saved without the weight normalization that the model has."""
import torch, torch.nn as nn
from torch.nn.utils.parametrizations import weight_norm
def make():
    return nn.Sequential(weight_norm(nn.Conv1d(4, 8, 3)), nn.ReLU(), nn.Conv1d(8, 2, 1))
model = make()
state = {k: v.clone() for k, v in model.state_dict().items()}
torch.nn.utils.parametrize.remove_parametrizations(model[0], "weight")
torch.save(model.state_dict(), "folded.pt")
fresh = make()
fresh.load_state_dict(torch.load("folded.pt"))
