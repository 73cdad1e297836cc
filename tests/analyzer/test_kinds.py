"""What the core believes values are, and what it refuses to believe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.rules.words import Kind

from .snippets import find, module_of, package

HEAD = "import torch\nfrom torch import nn, Tensor\nimport torch.nn.functional as F\n"


def kinds(body: str, expression: str) -> set[str]:
    module = module_of(HEAD + body)
    value = module.value_of(find(module, expression))
    return {kind.value for kind in value.kinds}


@pytest.mark.parametrize(
    ("body", "expression", "expected"),
    [
        ("def f(x: Tensor):\n    return x", "x", {"Tensor"}),
        ("def f(x: 'torch.Tensor | None'):\n    return x", "x", {"Tensor"}),
        ("def f(m: nn.Module):\n    return m", "m", {"Module"}),
        ("def f(p: nn.Parameter):\n    return p", "p", {"Parameter"}),
        ("def f(d: torch.device):\n    return d", "d", {"Device"}),
        ("def f(device: str):\n    return device", "device", {"DeviceString"}),
        ("def f(name: str):\n    return name", "name", {"Other"}),
        (
            "from typing import Union\ndef f(device: Union[torch.device, str]):\n    return device",
            "device",
            {"Device", "DeviceString"},
        ),
        ("def f(sd: dict[str, torch.Tensor]):\n    return sd", "sd", {"StateDict"}),
        ("def f(x: list[Tensor]):\n    return x", "x", {"Other"}),
        ("def f(x: Thing):\n    return x", "x", set()),
        ("def f(x):\n    return x", "x", set()),
        ("def f(x=3):\n    return x", "x", {"Other"}),
        ("def f(x=None):\n    return x", "x", set()),
    ],
)
def test_parameters(body: str, expression: str, expected: set[str]) -> None:
    assert kinds(body, expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.empty(2)", {"Tensor"}),
        ("torch.zeros_like(x)", {"Tensor"}),
        ("nn.Parameter(x)", {"Parameter"}),
        ("nn.Linear(2, 2)", {"Module"}),
        ("torch.device('cuda')", {"Device"}),
        ("x.device", {"Device"}),
        ("x.device.type", {"DeviceString"}),
        ("x.untyped_storage()", {"Storage"}),
        ("x.data_ptr()", {"Other"}),
        ("x.detach().cpu()", {"Tensor"}),
        ("x.shape", {"Other"}),
        ("x + 1", {"Tensor"}),
        ("x == y", {"Tensor"}),
        ("x is y", {"Other"}),
        ("x[0]", {"Tensor"}),
        ("m.state_dict()", {"StateDict"}),
        ("m.state_dict()['w']", {"Tensor"}),
        ("next(m.parameters())", {"Parameter"}),
        ("next(m.parameters()).device", {"Device"}),
        ("m.eval()", {"Module"}),
        ("m.get_input_embeddings()", {"Module"}),
        ("x if flag else y", {"Tensor"}),
        ("x if flag else thing()", set()),
        ("thing(x)", set()),
        ("'cuda:0'", {"DeviceString"}),
        ("'hello'", {"Other"}),
    ],
)
def test_expressions(expression: str, expected: set[str]) -> None:
    body = f"def f(x: Tensor, y: Tensor, m: nn.Module, flag):\n    return {expression}\n"
    assert kinds(body, expression) == expected


def test_flow_decides_which_assignment_counts() -> None:
    body = """
def f(x: Tensor, flag):
    d = x.device
    if flag:
        d = "cpu"
    return d
"""
    assert kinds(body, "d") == {"Device", "DeviceString"}


def test_a_branch_that_leaves_does_not_count() -> None:
    body = """
def f(x: Tensor, flag):
    d = x.device
    if flag:
        d = "cpu"
        return None
    return d
"""
    assert kinds(body, "d") == {"Device"}


def test_isinstance_narrows_both_ways() -> None:
    body = """
def f(device: torch.device | str):
    if isinstance(device, str):
        device = torch.device(device)
    return device
"""
    assert kinds(body, "device") == {"Device"}


def test_isinstance_with_early_return() -> None:
    body = """
def f(x):
    if not isinstance(x, torch.Tensor):
        return None
    return x
"""
    assert kinds(body, "x") == {"Tensor"}


def test_loop_variables_over_state_dicts_and_modules() -> None:
    body = """
def f(model: nn.Module):
    for name, t in model.state_dict().items():
        use(t)
    for name, p in model.named_parameters():
        use(p)
    for sub in model.children():
        use(sub)
    return [b for b in model.buffers()]
"""
    assert kinds(body, "t") == {"Tensor"}
    assert kinds(body, "p") == {"Parameter"}
    assert kinds(body, "sub") == {"Module"}
    assert kinds(body, "b") == {"Tensor"}


def test_a_loop_that_changes_its_variable_is_joined() -> None:
    body = """
def f(x: Tensor, items):
    v = x
    for item in items:
        use(v)
        v = item
"""
    assert kinds(body, "v") == set()


def test_try_and_except_are_joined() -> None:
    body = """
def f(x: Tensor):
    try:
        v = x.cpu()
    except RuntimeError:
        v = None
    return v
"""
    assert kinds(body, "v") == {"Tensor"}


def test_attributes_from_init_and_annotations() -> None:
    body = """
class Layer(nn.Module):
    scale: Tensor

    def __init__(self, weight: Tensor):
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.table = torch.zeros(3)
        self.limit = 4

    def forward(self, x):
        return self.weight, self.table, self.limit, self.scale, self.unknown, self
"""
    assert kinds(body, "self.weight") == {"Parameter"}
    assert kinds(body, "self.table") == {"Tensor"}
    assert kinds(body, "self.limit") == {"Other"}
    assert kinds(body, "self.scale") == {"Tensor"}
    assert kinds(body, "self.unknown") == set()
    assert kinds(body, "self") == {"Module"}


def test_attribute_assigned_elsewhere_too_is_joined() -> None:
    body = """
class Box:
    def __init__(self):
        self.value = torch.zeros(3)

    def fill(self, anything):
        self.value = anything

    def read(self):
        return self.value
"""
    assert kinds(body, "self.value") == set()


def test_wrapper_subclass_in_the_same_file() -> None:
    body = """
class Packed(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape)

def f(x: Packed):
    return x
"""
    assert kinds(body, "x") == {"WrapperTensor"}


def test_wrapper_subclass_whose_base_lives_in_another_file(tmp_path: Path) -> None:
    module = package(
        tmp_path,
        {
            "pkg/use.py": """
                from .child import ChildTensor
                def f(x: ChildTensor):
                    return x
                """,
            "pkg/__init__.py": "",
            "pkg/child.py": "from pkg import base\nclass ChildTensor(base.Base):\n    pass\n",
            "pkg/base.py": """
                import torch
                class Base(torch.Tensor):
                    @staticmethod
                    def __new__(cls, inner):
                        return torch.Tensor._make_wrapper_subclass(cls, inner.shape)
                """,
        },
    )
    assert module.kind_of(find(module, "x")) is Kind.WRAPPER_TENSOR
    assert {Path(path).name for path in module.needs} >= {"child.py", "base.py"}


def test_import_cycles_end(tmp_path: Path) -> None:
    module = package(
        tmp_path,
        {
            "pkg/a.py": "from .b import B\nclass A(B):\n    pass\ndef f(x: A):\n    return x\n",
            "pkg/__init__.py": "from .a import A\n",
            "pkg/b.py": "from .a import A\nclass B(A):\n    pass\n",
        },
    )
    assert module.kind_of(find(module, "x")) is Kind.UNKNOWN


def test_names_alone_make_a_value_unsure() -> None:
    module = module_of("def f(model, device):\n    return model, device\n")
    model = module.value_of(find(module, "model"))
    assert model.kind is Kind.MODULE
    assert not model.sure
    device = module.value_of(find(module, "device"))
    assert device.kinds == {Kind.DEVICE, Kind.DEVICE_STRING}
    assert not device.sure


def test_origins_lead_back_to_where_a_value_came_from() -> None:
    module = module_of(
        """
        def f(model, flag):
            sd = model.state_dict()
            if flag:
                sd = other(model)
            return sd
        """
    )
    origins = module.value_of(find(module, "sd")).origins
    assert [module.text(origin) for origin in origins] == ["model.state_dict()", "other(model)"]


def test_match_on_a_class_narrows() -> None:
    body = """
def f(value):
    match value:
        case torch.Tensor():
            return value.cpu()
"""
    assert kinds(body, "value") == {"Tensor"}


@pytest.mark.parametrize(("again", "expected"), [("", "cuda"), ('    PLACE = "cpu"\n', None)])
def test_a_constant_is_known_to_functions_that_the_top_calls(again: str, expected: str) -> None:
    """The top is asked first: what it calls is run before its end is reached."""
    module = module_of(
        'PLACE = "cuda"\ndef loaded(file):\n    return file.to(PLACE)\n'
        "def run(file):\n    loaded(file)\n    file.to(PLACE)\n"
        f'if __name__ == "__main__":\n{again}    file = open("a")\n    run(file)\n'
    )
    module.value_of(find(module, 'open("a")'))
    constant = module.value_of(find(module, "PLACE")).constant
    assert (constant if isinstance(constant, str) else None) == expected
