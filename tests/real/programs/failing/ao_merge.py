"""The weights are quantized under an adapter, and the adapter is merged."""
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torchao.quantization import Int8WeightOnlyConfig, quantize_


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(64, 64)

    def forward(self, x):
        return self.fc(x)


model = get_peft_model(Net(), LoraConfig(r=2, target_modules=["fc"], init_lora_weights=False))
quantize_(model, Int8WeightOnlyConfig(), filter_fn=lambda m, n: isinstance(m, nn.Linear) and "base_layer" in n)
merged = model.merge_and_unload()
print(merged(torch.ones(2, 64)).shape)
