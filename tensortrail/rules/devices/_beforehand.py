"""Code that runs on the CPU by what it is for: it prepares data, or exports or converts a model."""

from __future__ import annotations

import ast
import re

from tensortrail.rules.view import FunctionNode, Module

_OF_DATA = re.compile(
    r"(Dataset|Collator|Collate|TaskEncoder|FeatureExtractor|ImageProcessor|VideoProcessor)$"
)
"""How the names of classes end whose methods prepare what a loop moves later."""
_OF_FILES = re.compile(r"(^|_)(export|exporter|convert|converter|onnx)(_|$)")
_FOLDERS = frozenset({"tools", "converters", "model_converter"})
_EXAMPLES = frozenset({"example", "examples", "tutorial", "tutorials"})
_OF_DEVICES = frozenset({"device", "cuda", "to", "is_cuda", "get_device"})


def is_beforehand(module: Module, node: ast.AST | None) -> bool:
    """The file, the class or the function around the node works before anything is on a GPU."""
    if node is None:
        return False
    if module.once(_is_example_for_the_cpu, _file_of(module, node)):
        return True
    function = node if isinstance(node, FUNCTIONS) else module.function_of(node)
    return (
        _is_a_tool(module.path)
        or _prepares_data(module, node)
        or (function is not None and module.once(_reads_numpy, function))
    )


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_example(module: Module) -> bool:
    return not _EXAMPLES.isdisjoint(module.path.replace("\\", "/").split("/")[:-1])


def _file_of(module: Module, node: ast.AST) -> ast.AST:
    *_, file = (node, *module.ancestors(node))
    return file


def _is_example_for_the_cpu(module: Module, file: ast.AST) -> bool:
    """An example is a whole program, and this one says nothing of devices."""
    if not is_example(module):
        return False
    named = {each.attr for each in module.nodes(ast.Attribute, file)}
    named |= {each.arg for each in module.nodes(ast.keyword, file) if each.arg is not None}
    return named.isdisjoint(_OF_DEVICES)


def _is_a_tool(path: str) -> bool:
    *folders, name = path.replace("\\", "/").split("/")
    return bool(_OF_FILES.search(name.removesuffix(".py"))) or not _FOLDERS.isdisjoint(folders)


def _prepares_data(module: Module, node: ast.AST) -> bool:
    cls = module.class_of(node)
    if not isinstance(cls, ast.ClassDef):
        return False
    facts = module.class_facts(cls)
    if facts is not None and facts.is_module:
        return False
    bases = [module.qualified(each).rpartition(".")[2] for each in cls.bases]
    return any(_OF_DATA.search(name) for name in (cls.name, *bases))


def _reads_numpy(module: Module, function: FunctionNode) -> bool:
    """`x.detach().numpy()`, which raises for a tensor of a GPU."""
    return any(
        isinstance(call.func, ast.Attribute) and _is_argument_as_it_is(function, call.func.value)
        for call in module.calls("numpy", inside=function)
        if not call.args
    )


def _is_argument_as_it_is(function: FunctionNode, node: ast.expr) -> bool:
    """An argument of the function, detached at most."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in ("detach", "squeeze", "contiguous", "clone"):
                return False
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            break
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return isinstance(node, ast.Name) and node.id in given
