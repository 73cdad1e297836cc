"""An input to be optimized is moved after requires_grad."""
import torch

image = torch.rand(3, 8, 8, requires_grad=True).to("cuda")
optimizer = torch.optim.Adam([image], lr=0.1)
for _ in range(2):
    loss = image.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
