"""Where the programs of a project usually run, and which device they usually pass."""

from __future__ import annotations

import ast

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.written_for.callers import comes_from_the_cpu
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.moves import named_device
from tensortrail.rules.shared.never_given import is_given_somewhere
from tensortrail.rules.view import FunctionNode, Module


def runs_on_gpus(module: Module, node: ast.AST) -> bool:
    """The program of the file names a GPU, or that of a class which the class around extends."""
    if module.may_use_gpu():
        return True
    cls = module.class_of(node)
    facts = module.class_facts(cls) if cls is not None else None
    return facts is not None and any(module.about(each, _may_use_gpu) for each in facts.bases)


def may_run_on_gpus(module: Module, node: ast.AST) -> bool:
    """The same; and the users of a library may have one, whatever it names."""
    return runs_on_gpus(module, node) or module.is_for_users(node)


def _may_use_gpu(module: Module, _: ast.AST) -> bool:
    return module.may_use_gpu()


def is_usually_the_cpu(module: Module, device: ast.expr) -> bool:
    """`device` or `self.device` is a parameter for which nobody of the project passes another
    device than the CPU."""
    for each in (device, *module.value_of(device).origins):
        function = module.function_of(each)
        if function is None or not isinstance(each, ast.Name):
            continue
        if each.id in names_of_parameters(function) and (
            is_the_cpu_unless_given(module, function, each.id)
            or comes_from_the_cpu(module, function, each.id)
        ):
            return True
    return False


def is_the_cpu_unless_given(module: Module, function: FunctionNode, name: str) -> bool:
    """The parameter is the CPU by default, and no call of the project is known to pass it."""
    usual = (
        named_device(module, said) for arg, said in with_defaults(function.args) if arg.arg == name
    )
    is_cpu = any(isinstance(each, ast.Constant) and each.value == "cpu" for each in usual)
    return is_cpu and not is_given_somewhere(module, function, name)
