"""Where modules, models and what they hold are inferred to lie."""

from __future__ import annotations

import ast

import pytest

from ..snippets import module_of
from .test_places import HEAD, inside, places

CLASS = """
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freq", torch.ones(4))

    def forward(self, x, rows):
        return self.freq.to(x.device)[None, :] * rows[:, None]

class Base(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)
        self.scale = nn.Parameter(torch.ones(n))
        self.register_buffer("mask", torch.ones(n))
        self.table = torch.ones(n)
        self.layers = nn.ModuleList([nn.Linear(n, n) for _ in range(2)])
        self.inner = Inner()

class Model(Base):
    def helper(self, t):
        return t + self.mask

    def forward(self, x, rows=None):
        if rows is None:
            rows = torch.arange(x.shape[0])
        for layer in self.layers:
            x = layer(x)
        turned = self.inner(x, rows)
        return x, self.proj(x), self.scale, self.mask, self.table, self.helper(x), turned
"""


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x", "of(x) | self(output)"),
        ("self.proj(x)", "self(output)"),
        ("self.scale", "self(parameter)"),
        ("self.mask", "self(buffer)"),
        ("self.table", "stays(table)"),
    ],
)
def test_what_objects_keep(expression: str, expected: str) -> None:
    assert places(module_of(HEAD + CLASS), expression) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.table = self.table.to(x.device)", ""),
        ("return x + self.table", "stays(table)"),
    ],
)
def test_an_attribute_that_is_moved_later_is_not_known(body: str, expected: str) -> None:
    source = f"""
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.table = torch.ones(n)

    def forward(self, x):
        {body}
        return x

    def last(self):
        return self.table
"""
    assert places(module_of(HEAD + source), "self.table") == expected


def test_an_override_of_apply_that_moves_the_attribute_is_seen() -> None:
    source = """
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.table = torch.ones(n)

    def _apply(self, fn):
        self.__dict__["table"] = fn(self.table)
        return super()._apply(fn)

    def forward(self, x):
        return self.table
"""
    assert places(module_of(HEAD + source), "self.table") == ""


MODELS = "from transformers import AutoModel, CLIPTextModel\n"


@pytest.mark.parametrize(
    ("lines", "expression", "expected"),
    [
        (("e = model(tok(n, return_tensors='pt').input_ids)",), "e", "of(model)"),
        (("m = AutoModel.from_pretrained(n)", "e = m(x)"), "e", "default"),
        (("m = AutoModel.from_pretrained(n)", "m.to(device)", "e = m(x)"), "e", "device(device)"),
        (("m = AutoModel.from_pretrained(n, device_map='auto')", "e = m(x)"), "e", "local(e)"),
        (("m = nn.Linear(2, 2).to(device)", "e = m(x)"), "e", "device(device)"),
        (("m = nn.Linear(2, 2)", "m.cuda()", "e = m(x)"), "e", "literal(cuda)"),
        (("for r, s in torch.utils.data.DataLoader(n):", "    break", "e = r"), "e", "host"),
        (("e = torch.load(n, map_location='cpu')['k']",), "e", "host"),
        (("d = 'cuda' if n else 'cpu'", "e = torch.ones(2).to(d)"), "e", "device(d)"),
        (("my_device = 'cuda'", "e = torch.ones(2).to(my_device)"), "e", "device(my_device)"),
    ],
)
def test_models_and_what_libraries_give(
    lines: tuple[str, ...], expression: str, expected: str
) -> None:
    head = "def f(model: CLIPTextModel, tok, x: Tensor, n: str, device: torch.device):"
    module = inside(*lines, f"return {expression}", head=MODELS + head)
    assert places(module, expression) == expected


def test_a_component_of_a_pipeline_lies_with_it() -> None:
    module = module_of(
        f"{HEAD}{MODELS}class P:\n"
        "    def __init__(self, encoder: CLIPTextModel | None, other: list[CLIPTextModel]):\n"
        "        self.register_modules(encoder=encoder, other=other)\n"
        "    def f(self, x: Tensor):\n"
        "        if isinstance(self, list):\n            x = x.float()\n"
        "        return self.encoder(x), self.other(x)\n"
    )
    assert places(module, "self.encoder(x)") == "self(output)"
    assert places(module, "self.other(x)") == ""


@pytest.mark.parametrize(("base", "meets"), [("nn.Embedding", True), ("nn.Module", False)])
def test_the_forward_of_a_leaf_that_is_the_base_takes_its_parameters(
    base: str, meets: bool
) -> None:
    module = module_of(
        HEAD + f"class Positions({base}):\n    def forward(self, n: int):\n"
        "        steps = torch.arange(n)\n        return super().forward(steps + 2)\n"
    )
    function = next(each for each in module.nodes(ast.FunctionDef))
    found = [
        {place.text for held in (each.left, each.right) for place in held.places}
        for each in module.places(function).meetings
        if each.operation == "module"
    ]
    assert found == ([{"self", "default"}] if meets else [])


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("nn.Embedding", "self(output)"),
        ("nn.Module | None", "self(output)"),
        ("Optional[nn.Linear]", "self(output)"),
        ("nn.Linear | Callable", ""),
        ("nn.ModuleDict", ""),
    ],
)
def test_a_part_that_is_given_as_a_module_lies_with_its_owner(said: str, expected: str) -> None:
    module = module_of(
        f"{HEAD}from typing import Optional, Callable\nclass P(nn.Module):\n"
        f"    def __init__(self, part: {said}):\n        super().__init__()\n"
        "        self.part = part\n"
        "    def forward(self, x: Tensor):\n        return self.part(x)\n"
    )
    assert places(module, "self.part(x)") == expected


def test_what_a_function_demands_is_lifted_to_its_callers() -> None:
    module = module_of(HEAD + CLASS)
    forward = module.definition_named("Model.forward")
    assert isinstance(forward, ast.FunctionDef)
    met = [
        meeting
        for meeting in module.places(forward).meetings
        if ast.unparse(meeting.node) == "self.inner(x, rows)"
    ]
    assert any(
        "default if rows is None" in {place.text for place in side.places}
        for meeting in met
        for side in (meeting.left, meeting.right)
    )
