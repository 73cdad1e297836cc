"""A GAN whose generator's optimizer has the discriminator's parameters."""
import torch
from torch import nn

torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)


generator, discriminator = Generator(), Discriminator()
opt_g = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
before = generator.net[0].weight.detach().clone()
for _ in range(4):
    real, z = torch.randn(8, 2) + 3, torch.randn(8, 4)
    opt_d.zero_grad()
    fake = generator(z).detach()
    d_loss = bce(discriminator(real), torch.ones(8, 1)) + bce(discriminator(fake), torch.zeros(8, 1))
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss = bce(discriminator(generator(z)), torch.ones(8, 1))
    g_loss.backward()
    opt_g.step()
assert not torch.equal(before, generator.net[0].weight), "the generator did not learn"
