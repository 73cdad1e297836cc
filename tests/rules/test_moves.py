"""One function says whether a call moves to the CPU, and the rules that ask see every spelling."""

from __future__ import annotations

import pytest

from tensortrail.rules import all_rules
from tensortrail.rules.shared.moves import moves_to_cpu
from tensortrail.testing.examples import run
from tests.analyzer.snippets import module_of
from tests.rules.judged import findings

HEAD = "import torch\nfrom torch import device as Device\n\nHOST = torch.device('cpu')\n\n\n"
TO_CPU = (
    "x.cpu()",
    "x.cpu(memory_format=torch.preserve_format)",
    "x.to('cpu')",
    "x.to('cpu:0')",
    "x.to('cpu', torch.half)",
    "x.to(device='cpu')",
    "x.to(torch.half, device='cpu')",
    "x.to(torch.device('cpu'))",
    "x.to(torch.device(type='cpu'))",
    "x.to(Device('cpu', 0))",
    "x.to(HOST)",
    "x.to(host)",
)
ELSEWHERE = (
    "x.cuda()",
    "x.to('cuda')",
    "x.to(device='cuda')",
    "x.to(torch.half)",
    "x.to(where)",
    "x.to(either)",
    "x.to(torch.device('cuda', 1))",
    "x.to(y, 'cpu')",
    "x.type_as('cpu')",
    "x.send('cpu')",
    "models.cpu(x)",
    "to('cpu')",
)


@pytest.mark.parametrize("call", [*TO_CPU, *ELSEWHERE])
def test_a_move_to_the_cpu(call: str) -> None:
    module = module_of(
        f"{HEAD}def f(x, y, flag, where='cpu'):\n    host = 'cpu'\n"
        f"    either = 'cpu' if flag else 'cuda'\n    return {call}\n"
    )
    name = call.partition("(")[0].rpartition(".")[2]
    (asked,) = module.calls(name)
    assert moves_to_cpu(module, asked) is (call in TO_CPU)


BROUGHT_BACK = """\
import torch

def sorted_rows(x):
    return {away}.sort(dim=1).values.cuda()
"""
UNDER_A_FLAG = """\
import torch

def generate(args, encoder, model, prompt, noise):
    embedding = encoder(prompt)
    if args.offload:
        encoder.{move}
    latents = model(noise, embedding)
    model.{move}
    return latents
"""
SPELLINGS = ("cpu()", "to('cpu')", "to(device='cpu')", "to(torch.device('cpu'))")


@pytest.mark.parametrize("move", [*SPELLINGS, "to('cuda')"])
def test_rules_see_every_spelling(move: str) -> None:
    expected = int(move != "to('cuda')")
    assert len(findings("DEV517", BROUGHT_BACK.format(away=f"x.{move}"))) == expected
    assert len(findings("OFF114", UNDER_A_FLAG.format(move=move))) == expected


def test_a_place_that_is_set_under_the_flag_alone() -> None:
    source = """\
def cached(args, vae, data):
    if args.offload:
        vae.eval()
        place = "cpu"
    vae.to(place)
    return data.encode(vae)
"""
    (found,) = findings("OFF114", source)
    assert "moved to `place`" in found.message


OTHERS = ("xpu", "npu", "hpu")


@pytest.mark.parametrize("name", OTHERS)
def test_no_rule_flags_on_another_accelerator_what_is_good_on_cuda(name: str) -> None:
    asked = 0
    for rule in all_rules().values():
        for good in rule.good:
            if ".cuda(" in good.source and "torch.cuda" not in good.source:
                source = good.source.replace(".cuda(", f".{name}(")
                assert not run(rule, source, good.files, good.path), source
                asked += 1
    assert asked > 20


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize(
    "code", ["DEV540", "DEV542", "DEV543", "DEV545", "DEV599", "DEV616", "STO215"]
)
def test_moves_to_other_accelerators_are_moves(code: str, name: str) -> None:
    rule, asked = all_rules()[code], 0
    for bad in rule.bad:
        if ".cuda(" in bad.source:
            source = bad.source.replace(".cuda(", f".{name}(")
            found = {each.site.line for each in run(rule, source, bad.files, bad.path)}
            assert found == set(bad.lines), source
            asked += 1
    assert asked


@pytest.mark.parametrize("move", ["cuda()", "xpu()", "half()", "double()", "item()"])
def test_what_is_dropped(move: str) -> None:
    source = f"import torch\n\ndef finish(loss: torch.Tensor):\n    loss.{move}\n    return loss\n"
    assert len(findings("DEV504", source)) == int(move != "item()")


@pytest.mark.parametrize("name", ["cuda", *OTHERS, "eval"])
def test_layers_that_are_made_after_a_move(name: str) -> None:
    source = (
        "from torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, n):\n"
        f"        super().__init__()\n        self.inner = nn.Linear(n, n)\n        self.{name}()\n"
        "        self.head = nn.Linear(n, 2)\n\n    def forward(self, x):\n"
        "        return self.head(self.inner(x))\n"
    )
    assert len(findings("DEV610", source)) == int(name != "eval")


@pytest.mark.parametrize("device", ["'cpu'", "torch.device('cpu')", "HOST", "None"])
def test_a_generator_of_the_cpu_draws_on_the_cpu(device: str) -> None:
    source = (
        f"{HEAD}def f(n):\n    generator = torch.Generator()\n"
        f"    return torch.randn(n, generator=generator, device={device})\n"
    )
    assert not findings("DEV512", source)
    assert findings("DEV512", source.replace(f"device={device}", "device=torch.device('cuda')"))


@pytest.mark.parametrize("move", [*SPELLINGS, "to('cuda')", "to('cpu', torch.half)"])
def test_weights_that_are_kept_on_the_cpu_are_no_copy(move: str) -> None:
    source = f"""\
import torch

def train(model, loader, optimizer):
    best = {{k: v.{move} for k, v in model.state_dict().items()}}
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
    model.load_state_dict(best)
"""
    assert len(findings("SHD411", source)) == int(move in SPELLINGS)
