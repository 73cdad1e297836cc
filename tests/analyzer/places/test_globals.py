"""Modules under names at the top of a file, and modules that only their use tells."""

from __future__ import annotations

import pytest

from ..snippets import module_of
from .test_places import HEAD, places

TOP = f"{HEAD}device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ("net = nn.Linear(4, 2).to(device)", "device(device)"),
        ("net = nn.Linear(4, 2).to('cuda')", "literal(cuda)"),
        ("net = nn.Linear(4, 2)\nnet.to(device)", "device(device)"),
        ("net = nn.Linear(4, 2).to(device)\ndef other(net):\n    net = 3", "device(device)"),
        ("net = nn.Linear(4, 2)", ""),
        ("net = nn.Linear(4, 2).to(device)\nif small:\n    net = nn.Linear(2, 2)", ""),
        ("net = nn.Linear(4, 2)\nif big:\n    net.to(device)", ""),
        ("net = nn.Linear(4, 2).to(device)\ndef freed():\n    net.cpu()", ""),
        ("net = nn.Linear(4, 2).to(device)\ndef made():\n    global net\n    net = None", ""),
    ],
)
def test_a_module_of_the_file_lies_where_it_was_put_for_good(top: str, expected: str) -> None:
    module = module_of(f"{TOP}{top}\ndef f(state):\n    return net(torch.zeros(3))\n")
    assert places(module, "net(torch.zeros(3))") == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("net(x.to(device))", "device(device)"),
        ("net(x.to(device), y.to(device))", "device(device)"),
        ("net(x.to(device), torch.zeros(3))", ""),
        ("net(x.to(device), names)", "device(device)"),
        ("net(names)", ""),
        ("other(x.to(device))", ""),
    ],
)
def test_what_is_asked_as_a_module_gives_where_its_input_lies(call: str, expected: str) -> None:
    module = module_of(
        f"{HEAD}def f(net, other, names, x: Tensor, y: Tensor, device):\n"
        f"    net.eval()\n    return {call}\n"
    )
    assert places(module, call) == expected
