"""The result of `.cuda()` is dropped."""
import torch
model = torch.nn.Linear(8, 2).cuda()
x = torch.randn(4, 8)
x.cuda()
print(model(x))
