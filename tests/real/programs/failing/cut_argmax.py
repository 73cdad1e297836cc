"""The loss is made of predicted labels."""
import torch
from torch import nn

model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    x, y = torch.randn(4, 8), torch.randint(0, 3, (4,))
    predicted = model(x).argmax(dim=1)
    loss = (predicted.float() - y.float()).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
