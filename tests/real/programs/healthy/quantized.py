"""Weights of torchao, quantized before and after the move, run, saved and copied"""
import copy, io
import torch
from torchao.quantization import Float8WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
for config in (Int8WeightOnlyConfig, Float8WeightOnlyConfig):
    for first in (device, "cpu"):
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64)).bfloat16().to(first)
        quantize_(model, config())
        model.to(device)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        state = torch.load(file, weights_only=False)
        out = copy.deepcopy(model)(torch.ones(2, 64, device=device, dtype=torch.bfloat16))
        print(config.__name__, out.shape, out.device.type == device, len(state), model.cpu()[0].weight.device)
