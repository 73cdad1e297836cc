"""An exponential average whose weights are the model's own tensors."""
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


def update(ema, model, decay=0.99):
    for key, value in model.state_dict().items():
        ema[key].mul_(decay).add_(value, alpha=1 - decay)


def main():
    model = Net()
    ema = {k: v for k, v in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(5):
        x = torch.randn(4, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update(ema, model)
    averaged = Net()
    averaged.load_state_dict(ema)
    assert not torch.equal(averaged.head.weight, model.head.weight), "the average equals the model"


main()
