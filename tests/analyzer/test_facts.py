"""Facts about classes and functions, and the settings that code can consult."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from .snippets import find, module_of, package

WRAPPER = """
import torch
aten = torch.ops.aten
implements = Packed.implements

class Packed(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, *, device=None):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=device)

    def __init__(self, inner, scale):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func == aten.detach.default:
            return cls(args[0].inner)
        if func in (torch.ops.aten.clone.default, aten._to_copy.default):
            return cls(args[0].inner)
        {last}

@implements(aten.slice.Tensor)
def _(func, types, args, kwargs):
    return args[0]

@implements([aten.view.default, aten.split.Tensor])
def _(func, types, args, kwargs):
    return args[0]
"""


def facts_of(source: str, name: str):  # type: ignore[no-untyped-def]
    module = module_of(source)
    node = module.definition_named(name)
    assert isinstance(node, ast.ClassDef)
    facts = module.class_facts(node)
    assert facts is not None
    return facts


def test_a_wrapper_subclass_and_what_it_answers() -> None:
    facts = facts_of(WRAPPER.format(last="return func(*args)"), "Packed")
    assert facts.is_wrapper
    assert facts.complete
    assert {op.removeprefix("aten.") for op in facts.handles} == {
        "detach", "clone", "_to_copy", "slice", "view", "split",
    }  # fmt: skip
    assert facts.takes == {"inner", "device", "scale"}
    assert "inner" in facts.fields


@pytest.mark.parametrize(
    ("last", "rewraps", "raises"),
    [
        ("return func(*args)", False, False),
        ("return super().__torch_dispatch__(func, types, args, kwargs)", False, False),
        ("return tree_map(wrap, func(*args))", True, False),
        ("return return_and_correct_aliasing(func, args, kwargs, func(*args))", True, False),
        ("raise NotImplementedError(func)", False, True),
        ("out = func()\n        if func not in KEPT:\n            return out\n"
         "        return tree_map(wrap, out)", False, False),
    ],
)  # fmt: skip
def test_the_fall_through(last: str, rewraps: bool, raises: bool) -> None:
    facts = facts_of(WRAPPER.format(last=last), "Packed")
    assert (facts.rewraps_rest, facts.raises_rest) == (rewraps, raises)


def test_what_is_registered_for_one_class_is_not_another_ones() -> None:
    source = WRAPPER.format(last="return func(*args)") + (
        "\nclass Other(torch.Tensor):\n    @classmethod\n"
        "    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
        "        return func(*args)\n"
    )
    assert "aten.slice" not in facts_of(source, "Other").handles


def test_everything_is_inherited(tmp_path: Path) -> None:
    module = package(
        tmp_path,
        {
            "pkg/child.py": "from .base import Packed as P\nclass Child(P):\n    pass\n",
            "pkg/__init__.py": "",
            "pkg/base.py": WRAPPER.format(last="return func(*args)"),
        },
    )
    facts = module.class_facts("pkg.child.Child")
    assert facts is not None
    assert facts.is_wrapper
    assert "aten.slice" in facts.handles


def test_re_exports_and_star_imports_are_followed(tmp_path: Path) -> None:
    module = package(
        tmp_path,
        {
            "use.py": "from pkg import Packed, Starred\n",
            "pkg/__init__.py": "from .inner import Packed\nfrom .stars import *\n",
            "pkg/inner.py": "from .base import Packed\n",
            "pkg/stars.py": "from .base import Packed as Starred\n",
            "pkg/base.py": WRAPPER.format(last="return func(*args)"),
        },
    )
    for name in ("pkg.Packed", "pkg.Starred"):
        facts = module.class_facts(name)
        assert facts is not None, name
        assert facts.is_wrapper


def test_an_unknown_base_makes_a_class_incomplete() -> None:
    assert not facts_of("from x import Y\nclass A(Y):\n    pass\n", "A").complete
    assert facts_of("class A:\n    pass\n", "A").complete


def facts_of_call(source: str, call: str):  # type: ignore[no-untyped-def]
    module = module_of(source)
    node = find(module, call)
    assert isinstance(node, ast.Call)
    return module.function_facts(node)


def test_functions_that_move_their_arguments() -> None:
    source = """
    def park(module, other):
        module.to("cpu")

    def maybe(module, offload_to_cpu):
        if offload_to_cpu:
            module.cpu()

    def each(module):
        for sub in module.children():
            sub.to("meta")

    def free(tensor):
        tensor.untyped_storage().resize_(0)

    def same(tensor):
        return tensor

    def run(m, t):
        park(m, 1); maybe(m, 1); each(m); free(t); same(t)
    """
    assert facts_of_call(source, "park(m, 1)").moves == {"module": "cpu"}
    assert facts_of_call(source, "maybe(m, 1)").moves == {"module": "cpu"}
    assert facts_of_call(source, "each(m)").moves == {"module": "meta"}
    assert facts_of_call(source, "free(t)").frees == {"tensor"}
    assert facts_of_call(source, "same(t)").returns == {"tensor"}


def test_functions_that_call_each_other_end() -> None:
    source = """
    def even(m):
        m.cpu()
        return odd(m)

    def odd(m):
        return even(m)

    def run(m):
        even(m)
    """
    assert facts_of_call(source, "even(m)").moves == {"m": "cpu"}


def settings_at(source: str, call: str) -> list[tuple[str, bool]]:
    module = module_of(source)
    return [
        (each.expression, each.used_as_guard)
        for each in module.offload_settings(find(module, call))
    ]


def test_what_says_more_than_yes_or_no_is_no_setting() -> None:
    source = """
    class Pipeline:
        excluded_from_cpu_offload = ()
        order_of_cpu_offload = ""
        def send(self, cpu_offload=False):
            for name in self.order_of_cpu_offload.split():
                if name in self.excluded_from_cpu_offload:
                    act()
    """
    assert settings_at(source, "act()") == [("cpu_offload", False)]


def test_settings_of_parameters_and_attributes() -> None:
    source = """
    def run(model, offload_to_cpu=False, offload_dir=None):
        act()
    """
    assert settings_at(source, "act()") == [("offload_to_cpu", False)]


def test_the_setting_that_guards_elsewhere_comes_first() -> None:
    source = """
    class A:
        def other(self):
            note(self.cpu_offload)

        def guarded(self):
            if self.options.get("offload_module_to_cpu", False):
                act()

        def run(self):
            go()
    """
    found = settings_at(source, "go()")
    assert found[0] == ('self.options.get("offload_module_to_cpu", False)', True)
    assert ("self.cpu_offload", False) in found


def test_settings_forwarded_to_a_callee() -> None:
    source = """
    def build(gm, offload_module_to_cpu=False):
        pass

    class A:
        def compile(self):
            build(self.gm, **self.options)

        def run(self):
            go()
    """
    assert settings_at(source, "go()") == [
        ('self.options.get("offload_module_to_cpu", False)', False)
    ]


def test_fields_of_a_settings_class() -> None:
    source = """
    class Settings:
        offload_module_to_cpu: bool = False

    class A:
        def __init__(self, settings: Settings):
            self.settings = settings

        def run(self):
            go()
    """
    assert ("self.settings.offload_module_to_cpu", False) in settings_at(source, "go()")


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("torch.nn.Conv1d", True),
        ("torch.nn.modules.loss._Loss", True),
        ("torch.nn.parallel.DistributedDataParallel", True),
        ("transformers.BertPreTrainedModel", True),
        ("torchmetrics.Metric", True),
        ("gpytorch.models.ExactGP", True),
        ("torch.nn.Parameter", False),
        ("torch.nn.utils.rnn.PackedSequence", False),
        ("transformers.PretrainedConfig", False),
    ],
)
def test_modules_of_libraries_are_told_by_their_names(base: str, expected: bool) -> None:
    source = f"import {base.partition('.')[0]}\n\n\nclass Own({base}):\n    pass\n"
    assert facts_of(source, "Own").is_module is expected
