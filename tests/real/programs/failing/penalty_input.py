"""A gradient penalty is computed for an input that requires no gradient."""
import torch
from torch import nn

critic = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(critic.parameters())


def penalty(real, fake):
    mixed = 0.5 * real + 0.5 * fake
    scores = critic(mixed)
    (slope,) = torch.autograd.grad(scores.sum(), mixed, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


real, fake = torch.randn(4, 8), torch.randn(4, 8)
loss = critic(fake).mean() - critic(real).mean() + penalty(real, fake)
loss.backward()
optimizer.step()
