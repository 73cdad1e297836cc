"""The average of the weights is begun before the model goes to the GPU."""
import torch


class Average:
    def __init__(self, model, decay=0.9):
        self.model, self.decay = model, decay
        self.shadow = {}
        for name, weight in model.named_parameters():
            self.shadow[name] = weight.data.clone()

    def update(self):
        for name, weight in self.model.named_parameters():
            self.shadow[name] = (1 - self.decay) * weight.data + self.decay * self.shadow[name]


model = torch.nn.Linear(5, 5)
average = Average(model)
model.to("cuda")
average.update()
