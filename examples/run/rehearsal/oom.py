"""Two halves of a model on two GPUs, of which the second one gets too much."""

import torch

first = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).to("cuda:0")
second = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(8))).to("cuda:1")
kept = []
for step in range(100):
    kept.append(second(torch.ones(1024, 1024, device="cuda:1")).detach())
