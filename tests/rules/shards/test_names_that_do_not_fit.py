"""SHD409 and SHD412: loads in which the names of the weights can be seen not to fit."""

from __future__ import annotations

import pytest

from tests.rules.judged import lines

CONSUMES = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"
HEAD = """
import torch
from collections import OrderedDict
from torch.nn.parallel import DistributedDataParallel

def resume(net, path):
    model = DistributedDataParallel(net)
    state = torch.load(path, map_location="cpu", weights_only=True)
"""


def flagged(code: str, *body: str) -> bool:
    return bool(lines(code, HEAD + "".join(f"    {each}\n" for each in body)))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (("state = {k.removeprefix('module.'): v for k, v in state.items()}",), True),
        (("state = {k[7:]: v for k, v in state.items()}",), True),
        (("state = {k[len('module.'):]: v for k, v in state.items()}",), True),
        ((f"{CONSUMES}(state, 'module.')",), True),
        (("clean = OrderedDict()", "for k, v in state.items():",
          "    name = k[7:] if k.startswith('module.') else k", "    clean[name] = v",
          "state = clean"), True),
        (("state = {k.replace('head.', ''): v for k, v in state.items()}",), False),
        (("state = {f'module.{k}': v for k, v in state.items()}",), False),
        (("model = model.module", "state = {k[7:]: v for k, v in state.items()}"), False),
    ],
)  # fmt: skip
def test_a_prefix_that_is_cut_off(body: tuple[str, ...], expected: bool) -> None:
    assert flagged("SHD409", *body, "model.load_state_dict(state, strict=False)") is expected


def test_names_that_a_loop_shortens() -> None:
    filled = ("clean = {}", "for k, v in state.items():", "    if k.startswith('module.'):",
              "        k = k[len('module.'):]", "    clean[k] = v")  # fmt: skip
    assert flagged("SHD409", *filled, "model.load_state_dict(clean)")
    assert not flagged("SHD409", *filled, "net.load_state_dict(clean)")


@pytest.mark.parametrize(
    ("model", "expected"), [("DistributedDataParallel(net)", [11]), ("net", [])]
)
def test_a_file_with_the_weights_of_the_module_inside(model: str, expected: list[int]) -> None:
    source = f"""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    def save(net):
        model = DistributedDataParallel(net)
        torch.save(model.module.state_dict(), "last.pt")

    def resume(net):
        model = {model}
        model.load_state_dict(torch.load("last.pt", weights_only=True))
    """
    assert [line for line, _ in lines("SHD409", source)] == expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("f'model.{k}'", True),
        ("'model.' + k", True),
        ("f'body.{k}'", False),
        ("k.replace('body.', '')", True),
        ("k.replace('net.', '')", False),
        ("k.removeprefix('body.')", False),
    ],
)
def test_names_of_no_part(key: str, expected: bool) -> None:
    source = f"""
    from torch import nn

    class Net(nn.Module):
        def __init__(self, body):
            super().__init__()
            self.body, self.head = body, nn.Linear(2, 2)

        def fill(self, state):
            self.load_state_dict({{{key}: v for k, v in state.items()}}, strict=False)
    """
    assert bool(lines("SHD412", source)) is expected


@pytest.mark.parametrize(("report", "expected"), [("", True), ("missing = ", False)])
def test_names_that_the_save_changed(report: str, expected: bool) -> None:
    source = f"""
    import torch

    class Bundle:
        def save(self, path):
            state = {{"core." + k: v for k, v in self.model.state_dict().items()}}
            torch.save(state, path)

        def load(self, path):
            state = torch.load(path, weights_only=True)
            {report}self.model.load_state_dict(state, strict=False)
    """
    assert bool(lines("SHD412", source)) is expected
