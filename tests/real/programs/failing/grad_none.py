"""An image that is optimized by hand was moved after requires_grad."""
import torch
from torch import nn

net = nn.Linear(8, 1).to("cuda")
image = torch.rand(1, 8, requires_grad=True).to("cuda")
for _ in range(3):
    net(image).sum().backward()
    with torch.no_grad():
        image -= 0.1 * image.grad
        image.grad.zero_()
