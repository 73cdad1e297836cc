"""What is taken out of a container, given back by a function, or handed over by callers."""

from __future__ import annotations

from pathlib import Path

import pytest

from .snippets import find, module_of, package

HEAD = """\
import torch
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict
from torch import Tensor, nn
"""
TENSOR, UNKNOWN = {"Tensor"}, set[str]()


def kinds(body: str, expression: str = "found") -> set[str]:
    module = module_of(HEAD + body)
    return {kind.value for kind in module.value_of(find(module, expression)).kinds}


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("found = [torch.zeros(n), torch.ones(n)][k]", TENSOR),
        ("found = [torch.zeros(i) for i in range(n)][0]", TENSOR),
        ("found = (torch.zeros(n), 'name')[0]", TENSOR),
        ("found = (torch.zeros(n), 'name')[1]", {"Other"}),
        ("found = (torch.zeros(n), 'name')[k]", {"Tensor", "Other"}),
        ("found = {'a': torch.zeros(n), 'b': 1}.get(k)", {"Tensor", "Other"}),
        ("found = {name: torch.zeros(n) for name in k}.pop('a')", TENSOR),
        ("xs = [torch.zeros(n)]\nfound = xs[1:][0]", TENSOR),
        ("xs = []\nxs.append(torch.zeros(n))\nfound = xs[-1]", TENSOR),
        ("xs = []\nxs.append(torch.zeros(n))\nxs.append(k)\nfound = xs[0]", UNKNOWN),
        ("xs = []\nxs.extend([torch.zeros(n)])\nfound = xs.pop()", TENSOR),
        ("xs = []\nxs.extend(k)\nfound = xs.pop()", UNKNOWN),
        ("xs = deque()\nxs.appendleft(torch.zeros(n))\nfound = xs.popleft()", TENSOR),
        ("d = {}\nd[k] = torch.zeros(n)\nfound = d[n]", TENSOR),
        ("d = dict(a=torch.zeros(n))\nfound = d['a']", TENSOR),
        ("d = defaultdict(list)\nd[k].append(torch.zeros(n))\nfound = d[n][0]", TENSOR),
        ("found = sorted([torch.zeros(n)])[0]", TENSOR),
        ("xs = [(k, torch.zeros(n))]\nfound = xs[0][1]", TENSOR),
        ("xs = [k]\nfound = xs[0]", UNKNOWN),
        ("found = k[0]", UNKNOWN),
        ("a, (b, found) = k, (1, torch.zeros(n))", TENSOR),
        ("pair = k, torch.zeros(n)\na, found = pair", TENSOR),
        ("for a, found in zip([1], [torch.zeros(n)]): pass", TENSOR),
        ("for a, found in {'a': torch.zeros(n)}.items(): pass", TENSOR),
        ("for found in {'a': torch.zeros(n)}: pass", {"Other"}),
        ("for found in torch.zeros(n): pass", TENSOR),
        ("for i, (found, b) in enumerate([(torch.zeros(n), 1)]): pass", TENSOR),
        ("xs = [torch.zeros(n)]\nwhile k:\n    xs = [xs]\nfound = xs[0]", {"Tensor", "Other"}),
    ],
)
def test_items_of_local_containers(bound: str, expected: set[str]) -> None:
    lines = "\n    ".join([*bound.splitlines(), "found"])
    assert kinds(f"def f(n, k):\n    {lines}\n") == expected


@pytest.mark.parametrize(
    ("made", "put_in", "taken"),
    [
        ("[]", "self.kept.append(torch.zeros(n))", "self.kept[n]"),
        ("[]", "self.kept += [torch.zeros(n)]", "self.kept[n]"),
        ("[torch.zeros(3)]", "pass", "next(iter(self.kept))"),
        ("{}", "self.kept[n] = torch.zeros(n)", "self.kept[n]"),
        ("{}", "self.kept[n] = torch.zeros(n)", "self.kept.get(n)"),
        ("OrderedDict()", "self.kept.setdefault(n, torch.zeros(n))", "self.kept[n]"),
        ("{}", "self.kept.update({n: torch.zeros(n)})", "self.kept.pop(n)"),
        ("defaultdict(list)", "self.kept[n].append(torch.zeros(n))", "self.kept[n][0]"),
        ("deque()", "self.kept.append((n, torch.zeros(n)))", "self.kept.popleft()[1]"),
    ],
)
def test_what_another_method_put_into_a_container_of_self(
    made: str, put_in: str, taken: str
) -> None:
    body = f"""
class Cache:
    def __init__(self):
        self.kept = {made}

    def keep(self, n):
        {put_in}

    def take(self, n):
        found = {taken}
        return found
"""
    assert kinds(body) == TENSOR
    mixed = body + "\n    def more(self, n, x):\n        self.kept[n] = x\n"
    assert kinds(mixed) in (UNKNOWN, {"Tensor", "Other"})


@pytest.mark.parametrize(
    ("annotation", "taken"),
    [
        ("list[Tensor]", "given[0]"),
        ("tuple[int, Tensor]", "given[1]"),
        ("tuple[Tensor, ...]", "given[4]"),
        ("dict[str, list[Tensor]]", "given['a'][0]"),
        ("dict[str, Tensor] | None", "given['a']"),
        ("Plain", "given.held"),
        ("list[Plain]", "given[0].held"),
        ("Plain", "given.many[0]"),
        ("Named", "given.held"),
        ("Keyed", "given['held']"),
    ],
)
def test_containers_and_fields_that_are_annotated(annotation: str, taken: str) -> None:
    body = f"""
@dataclass
class Plain:
    held: Tensor
    many: list[Tensor] = field(default_factory=list)

class Named(NamedTuple):
    held: Tensor

class Keyed(TypedDict):
    held: Tensor

def f(given: {annotation}):
    found = {taken}
    found
"""
    assert kinds(body) == TENSOR


@pytest.mark.parametrize("annotation", ["tuple[()]", "dict[str]", "list[int, Tensor]", "list[0]"])
def test_containers_annotated_in_another_way(annotation: str) -> None:
    assert kinds(f"def f(given: {annotation}):\n    found = given[0]\n    found\n") == UNKNOWN


@pytest.mark.parametrize(
    ("made", "taken"),
    [
        ("def make(n):\n    x = torch.zeros(n)\n    return x * 2", "make(n)"),
        ("def make(n):\n    if n:\n        return torch.zeros(n)\n    return None", "make(n)"),
        ("def make(n):\n    return torch.zeros(n), n", "make(n)[0]"),
        ("def make(n):\n    return {'a': torch.zeros(n)}", "make(n)['a']"),
        ("def make(n):\n    yield torch.zeros(n)", "next(make(n))"),
        (
            "class A:\n    @classmethod\n    def make(cls):\n        return torch.zeros(3)",
            "A.make()",
        ),
        (
            "class A:\n    def make(self):\n        return torch.zeros(3)\n"
            "class B:\n    def __init__(self):\n        self.a = A()",
            "B().a.make()",
        ),
        (
            "class A:\n    def __init__(self):\n        self.t = torch.zeros(3)\n"
            "    @property\n    def made(self):\n        return self.t",
            "A().made",
        ),
        ("class M(nn.Module):\n    def forward(self, x) -> Tensor:\n        return f(x)", "M()(n)"),
        ("blocks = nn.ModuleList([nn.Linear(2, 2)])", "blocks[0](n)"),
    ],
)
def test_what_functions_of_the_file_give_back(made: str, taken: str) -> None:
    assert kinds(f"{made}\ndef f(n):\n    found = {taken}\n    found\n") == TENSOR


@pytest.mark.parametrize(
    "made",
    [
        "def make(n):\n    return n",
        "def make(n):\n    return torch.zeros(n) if n else n",
        "@wrapped\ndef make(n):\n    return torch.zeros(n)",
        "def make(n):\n    return make(n - 1)",
        "def make(n):\n    pass",
    ],
)
def test_results_that_are_not_known(made: str) -> None:
    assert kinds(f"{made}\ndef f(n):\n    found = make(n)\n    found\n") == UNKNOWN


def test_a_method_of_a_base_class_in_another_file(tmp_path: Path) -> None:
    module = package(
        tmp_path,
        {
            "pkg/model.py": """
                from pkg.base import Base
                class Model(Base):
                    def f(self, n):
                        self.kept[0], self.made(n), super().made(n)
                """,
            "pkg/__init__.py": "",
            "pkg/base.py": """
                import torch
                class Base:
                    def __init__(self):
                        self.kept = []
                    def made(self, n):
                        self.kept.append(torch.zeros(n))
                        return torch.ones(n)
                """,
        },
    )
    for text in ("self.kept[0]", "self.made(n)", "super().made(n)"):
        assert module.value_of(find(module, text)).is_tensor, text


@pytest.mark.parametrize(
    ("name", "calls", "expected"),
    [
        ("_use", "_use(torch.zeros(3))", TENSOR),
        ("_use", "_use(torch.zeros(3)), _use(x=torch.ones(3))", TENSOR),
        ("_use", "_use(torch.zeros(3)), _use(other)", UNKNOWN),
        ("_use", "_use(*[torch.zeros(3)])", UNKNOWN),
        ("_use", "other", UNKNOWN),
        ("use", "use(torch.zeros(3))", UNKNOWN),
    ],
)
def test_arguments_of_the_callers_of_a_private_function(
    name: str, calls: str, expected: set[str]
) -> None:
    body = f"def {name}(x):\n    found = x\n    found\n\ndef f(other):\n    {calls}\n"
    assert kinds(body) == expected
