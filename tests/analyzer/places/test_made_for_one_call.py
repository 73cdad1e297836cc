"""Layers that a method makes for one call, devices that settings hold, and defaults of a GPU."""

from __future__ import annotations

import pytest

from ..snippets import module_of
from .test_places import HEAD, places


@pytest.mark.parametrize(
    ("body", "called", "expected"),
    [
        ("conv = nn.Conv1d(1, 1, 3)\n        return conv(x)", "conv(x)", "default"),
        ("return nn.Conv1d(1, 1, 3)(x)", "nn.Conv1d(1, 1, 3)(x)", "default"),
        ("conv = nn.Linear(1, 1)\n        conv.eval()\n        return conv(x)",
         "conv(x)", "default"),
        ("conv = nn.Linear(1, 1)\n        self.conv = conv\n        return conv(x)",
         "conv(x)", "self(output)"),
        ("conv = nn.Linear(1, 1)\n        self.put(conv)\n        return conv(x)",
         "conv(x)", "self(output)"),
    ],
)  # fmt: skip
def test_a_layer_is_part_of_the_object_only_if_something_gets_it(
    body: str, called: str, expected: str
) -> None:
    module = module_of(
        f"{HEAD}class M(nn.Module):\n    def run(self, x: Tensor):\n        {body}\n"
    )
    assert places(module, called) == expected


def test_transforms_of_torchaudio_are_layers() -> None:
    module = module_of(
        f"{HEAD}import torchaudio\ndef f(x: Tensor):\n"
        "    resample = torchaudio.transforms.Resample(8000, 16000)\n    return resample(x)\n"
    )
    assert places(module, "resample(x)") == "default"


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ("args.rate, args.seed", "device(args.device)"),
        ("args.rate", "of(args)"),
        ("args.rate, args.seed, args.parameters()", "of(args)"),
        ("args.rate, args.seed, args.shape", "of(args)"),
        ("args.rate, args.seed, args(3)", "of(args)"),
    ],
)
def test_the_device_of_settings_is_one_of_its_own(used: str, expected: str) -> None:
    module = module_of(
        f"{HEAD}def f(args):\n    print({used})\n    return torch.zeros(3, device=args.device)\n"
    )
    assert places(module, "torch.zeros(3, device=args.device)") == expected


@pytest.mark.parametrize(
    ("default", "expected"),
    [("'cuda'", "literal(cuda)"), ("'cpu'", "default"), ("torch.device('cuda')", "literal(cuda)")],
)
def test_a_device_that_is_left_out_is_the_default(default: str, expected: str) -> None:
    module = module_of(
        f"{HEAD}def made(n, device={default}):\n    return torch.zeros(n, device=device)\n"
        "def f():\n    return made(3)\n"
    )
    assert places(module, "made(3)") == expected
