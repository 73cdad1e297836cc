"""A trained adapter is loaded onto a model that was prepared for an adapter already."""
import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x)


settings = LoraConfig(r=2, target_modules=["fc"], init_lora_weights=False)
trained = get_peft_model(Net(), settings)
folder = tempfile.mkdtemp()
trained.save_pretrained(folder)
base = get_peft_model(Net(), settings)
again = PeftModel.from_pretrained(base, folder)
x = torch.ones(1, 8)
assert torch.allclose(again(x), trained(x)), "the adapter was not loaded as it was trained"
