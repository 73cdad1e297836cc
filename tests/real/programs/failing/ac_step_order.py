"""Actor and critic: the critic's step comes between the actor's forward and backward."""
import torch
from torch import nn

actor, critic = nn.Linear(8, 2), nn.Linear(2, 1)
opt_a = torch.optim.SGD(actor.parameters(), lr=0.1)
opt_c = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(2):
    s = torch.randn(16, 8)
    value = critic(actor(s))
    actor_loss = -value.mean()
    critic_loss = (critic(actor(s).detach()) - 1).pow(2).mean()
    opt_c.zero_grad()
    critic_loss.backward()
    opt_c.step()
    opt_a.zero_grad()
    actor_loss.backward()
    opt_a.step()
