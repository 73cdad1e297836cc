"""A GAN whose generator gets no gradients: the fakes are detached for both."""
import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(discriminator.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
before = generator[0].weight.detach().clone()
for _ in range(4):
    real, z = torch.randn(8, 2) + 3, torch.randn(8, 4)
    fake = generator(z).detach()
    opt_d.zero_grad()
    d_loss = bce(discriminator(real), torch.ones(8, 1)) + bce(discriminator(fake), torch.zeros(8, 1))
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss = bce(discriminator(fake), torch.ones(8, 1))
    g_loss.backward()
    opt_g.step()
assert not torch.equal(before, generator[0].weight), "the generator did not learn"
