"""`tensortrail demo`: a program that fails on a GPU, from its error to its fix, without a GPU."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from tensortrail.cli.console import fail, say, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED
from tensortrail.cli.extras import install, lacking
from tensortrail.files import write

PROGRAM = '''\
"""Trains a small model on a GPU, and forgets to move the prompt of the last line."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.head = nn.Linear(64, 1000)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embed(ids))


torch.manual_seed(0)
model = Model().to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    ids = torch.randint(1000, (4, 16), device="cuda")
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: loss {loss.item():.2f} on {loss.device}")

prompt = torch.randint(1000, (1, 8))
print("next word:", model(prompt)[0, -1].argmax().item())
'''
STEPS = (
    ("A program for a GPU, on a simulated one. It fails, and is explained:",
     ("trace", "--rehearse", "cuda", "train.py")),
    ("The change that the recorded run suggests:", ("fix", "--unsafe-fixes", "--diff")),
    ("Make that change:", ("fix", "--unsafe-fixes")),
    ("Run it again:", ("trace", "--rehearse", "cuda", "train.py")),
    ("Find other risky code in it, without running it:", ("check", "train.py")),
    ("The recorded run as a page for the browser:", ("report", "--format", "html")),
)  # fmt: skip
_ELSEWHERE = "name another folder: tensortrail demo FOLDER"


def run(options: Namespace) -> int:
    folder = Path(options.folder)
    if package := lacking("trace"):
        fail(f"{package} is not installed here", f"the demo records a run: {install('trace')}")
        return FAILED
    program = folder / "train.py"
    if program.exists():
        fail(f"{program} exists already", _ELSEWHERE)
        return FAILED
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write(str(program), PROGRAM.encode())
    except OSError as error:
        fail(f"{error.filename or program}: {error.strerror or error}", _ELSEWHERE)
        return FAILED
    write_text(f"This writes {program} and works in {folder}.", sys.stdout)
    for what, arguments in STEPS:
        write_text(f"\n# {what}\n$ tensortrail {' '.join(arguments)}", sys.stdout)
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "tensortrail", *arguments], cwd=folder, check=False)
    say(f"tensortrail: the program as it is now: {program}")
    return CLEAN
