"""Arguments and variables with the name of something that is imported from torch."""

from __future__ import annotations

import ast

import pytest

from tensortrail.analyzer.judging.module import PythonModule, open_project
from tests.analyzer.snippets import module_of

HEAD = "import torch\nfrom torch import Tensor, device, dtype, nn\n\n"


@pytest.mark.parametrize(
    ("code", "resolved"),
    [
        ("def f(x, device):\n    return x.to(device)\n", "device"),
        ("def f(x, *, device=None):\n    return x.to(device)\n", "device"),
        ("def f(x):\n    device = x.device\n    return x.to(device)\n", "device"),
        ("def f(x, device):\n    def g():\n        return x.to(device)\n    return g\n", "device"),
        ("def f(x):\n    return x.to(device)\n", "torch.device"),
        ("def f(x, y=lambda device: device):\n    return x.to(device)\n", "torch.device"),
        ("def g(device): ...\n\ndef f(x):\n    return x.to(device)\n", "torch.device"),
        ("def f(x):\n    from torch import device\n    return x.to(device)\n", "torch.device"),
    ],
)
def test_an_argument_of_to(code: str, resolved: str) -> None:
    module = module_of(HEAD + code)
    (call,) = module.calls("to")
    assert module.qualified(call.args[0]) == resolved


def test_annotations_and_defaults_are_evaluated_outside() -> None:
    module = module_of(HEAD + "def f(x, device: device = device('cpu')):\n    return device\n")
    (function,) = module.nodes(ast.FunctionDef)
    (annotation,) = [each.annotation for each in function.args.args if each.annotation]
    assert module.qualified(annotation) == "torch.device"
    assert module.qualified(function.args.defaults[0]) == "torch.device"
    (returned,) = module.nodes(ast.Return)
    assert returned.value is not None
    assert module.qualified(returned.value) == "device"


TWICE = """
def train(rows, device=None, engine="a"):
    if engine == "a":
        from pkg.first import run
        return run(rows)
    from pkg.second import run
    return run(rows, device=device)
"""


@pytest.mark.usefixtures("as_the_rule_says")
def test_the_nearest_import_says_what_a_name_is() -> None:
    module = PythonModule("own.py", TWICE.encode(), open_project())
    found = [module.qualified(each.func) for each in module.calls("run")]
    assert found == ["pkg.first.run", "pkg.second.run"]
