"""The hidden state of the last batch is given to the next one with its graph."""
import torch
from torch import nn

rnn, out = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*rnn.parameters(), *out.parameters()])
hidden = torch.zeros(1, 4, 16)
for _ in range(3):
    x = torch.randn(4, 5, 8)
    y, hidden = rnn(x, hidden)
    loss = out(y[:, -1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
