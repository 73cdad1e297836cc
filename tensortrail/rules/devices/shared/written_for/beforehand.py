"""Code that runs on the CPU by what it is for: it prepares data, or exports or converts a model."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.written_for.pinned_to_cpu import works_on_the_cpu
from tensortrail.rules.shared.moves import is_cpu
from tensortrail.rules.view import Module

_OF_DATA = pattern(
    r"(Dataset|Collator(With\w+)?|Collate|TaskEncoder|FeatureExtractor|ImageProcessor|VideoProcessor)$"
)
"""How the names of classes end whose methods prepare what a loop moves later."""
_OF_FILES = pattern(r"(^|[_-])(export|exporter|convert|converter|onnx)([_-]|$)")
_FOLDERS = frozenset({"tools", "converters", "model_converter"})
_EXAMPLES = frozenset({"example", "examples", "tutorial", "tutorials"})
_OF_DATA_FOLDERS = frozenset(
    "data dataset datasets dataloader dataloaders data_utils preprocess preprocessing".split()
)
"""Folders whose code prepares what a loop moves later."""
_OF_TRANSFORMS = frozenset({"transform", "transforms"})
"""The same of modules too: they are written as modules to be put one after another."""
_DEVICE = pattern(r"^(device|DEVICE)$")
_OF_DEVICES = frozenset({"device", "cuda", "to", "is_cuda", "get_device"})


def is_beforehand(module: Module, node: ast.AST | None) -> bool:
    """The file, the class or the function around the node works before anything is on a GPU."""
    if node is None:
        return False
    file = _file_of(module, node)
    if module.once(_is_example_for_the_cpu, file) or module.once(_is_for_the_cpu_alone, file):
        return True
    function = node if isinstance(node, FUNCTIONS) else module.function_of(node)
    return (
        _is_a_tool(module)
        or prepares_data(module, node)
        or (function is not None and works_on_the_cpu(module, function))
    )


def need_not_move(module: Module, node: ast.AST) -> bool:
    """The class around works on the CPU, or its objects are made on the device they stay on."""
    cls = node if isinstance(node, ast.ClassDef) else module.class_of(node)
    if is_beforehand(module, node) or module.builds_on_device():
        return True
    return cls is not None and module.default_set_for(cls.name)


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_example(module: Module) -> bool:
    return not _EXAMPLES.isdisjoint(module.path.replace("\\", "/").split("/")[:-1])


def _file_of(module: Module, node: ast.AST) -> ast.AST:
    within = module.top.body[0] if node is module.top else node
    *_, file = (within, *module.ancestors(within))
    return file


def _is_example_for_the_cpu(module: Module, file: ast.AST) -> bool:
    """An example is a whole program, and so is a script that trains; this one says nothing of
    devices."""
    if not is_example(module) and not _is_script_that_trains(module, file):
        return False
    named = {each.attr for each in module.nodes(ast.Attribute, file)}
    named |= {each.arg for each in module.nodes(ast.keyword, file) if each.arg is not None}
    return named.isdisjoint(_OF_DEVICES)


def _is_script_that_trains(module: Module, file: ast.AST) -> bool:
    if not isinstance(file, ast.Module) or next(module.calls("backward"), None) is None:
        return False
    asked = (each.test for each in file.body if isinstance(each, ast.If))
    return any("__name__" in module.text(each) for each in asked)


def _is_for_the_cpu_alone(module: Module, file: ast.AST) -> bool:
    """`device = "cpu"` at the top of the file, and no other device is named in it."""
    if not isinstance(file, ast.Module):
        return False
    said = [
        each.value
        for each in file.body
        if isinstance(each, ast.Assign) and _DEVICE.search(module.text(each.targets[0]))
    ]
    words = {each.value for each in module.nodes(ast.Constant, file) if _is_gpu(each.value)}
    return bool(said) and not words and all(is_cpu(module, each) for each in said)


def _is_gpu(value: object) -> bool:
    return isinstance(value, str) and value.partition(":")[0] in ("cuda", "mps", "xpu", "npu")


def _is_a_tool(module: Module) -> bool:
    """By its name, that of its package or of one above, or by its folder."""
    *folders, name = module.path.replace("\\", "/").split("/")
    names = (name.removesuffix(".py"), *module.name.split("."))
    return any(map(_OF_FILES.search, names)) or not _FOLDERS.isdisjoint(folders)


def prepares_data(module: Module, node: ast.AST) -> bool:
    """A data set or a collator, or what lies with these and says nothing of devices."""
    cls = module.class_of(node)
    if not isinstance(cls, ast.ClassDef):
        return _lies_with(module, node, _OF_DATA_FOLDERS)
    facts = module.class_facts(cls)
    if facts is not None and facts.is_module:
        return _lies_with(module, cls, _OF_TRANSFORMS)
    bases = [module.qualified(each).rpartition(".")[2] for each in cls.bases]
    by_name = any(_OF_DATA.search(name) for name in (cls.name, *bases))
    return by_name or _lies_with(module, cls, _OF_DATA_FOLDERS)


def _lies_with(module: Module, node: ast.AST, named_so: frozenset[str]) -> bool:
    """The file is in such a folder, and the class or function says nothing of devices."""
    if named_so.isdisjoint(module.path.replace("\\", "/").split("/")[:-1]):
        return False
    around = node if isinstance(node, (ast.ClassDef, *FUNCTIONS)) else module.function_of(node)
    if around is None:
        return False
    named = {each.attr for each in module.nodes(ast.Attribute, around)}
    given = {each.arg for each in ast.walk(around) if isinstance(each, (ast.arg, ast.keyword))}
    return (named | given).isdisjoint(_OF_DEVICES)
