"""The parameters of what a call calls: a function, a method, or the constructor of a class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.analyzer.facts import hints
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.functions import params_of
from tensortrail.analyzer.values.sent import sent_parameters
from tensortrail.analyzer.values.state_files import loaded_states, written_states
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import TENSORS

_MAKERS = ("__init__", "__new__")
_PLAIN = ("staticmethod", "classmethod", "no_grad()", "inference_mode()", "abstractmethod")
"""How decorators end that pass no argument of their own."""
_ANCESTORS = 4
"""How many of one file are looked into for a constructor."""


class Signature(NamedTuple):
    """What a callee takes."""

    parameters: tuple[str, ...] = ()
    """In order, without `self`; none where it takes `*args`."""
    chosen_defaults: frozenset[str] = frozenset()
    """Those whose default is a value, and not None."""
    gpu_defaults: frozenset[str] = frozenset()
    """Those whose default is a GPU, as it is written, and that the callee reads."""
    needed: frozenset[str] = frozenset()
    """Those without a default, unless a decorator may pass them."""
    sent: frozenset[str] = frozenset()
    """Those that are pickled for other processes as they are given."""
    written: frozenset[str] = frozenset()
    """Those whose state dict it writes into a file."""
    loaded: frozenset[str] = frozenset()
    """Those that it gives a state dict."""
    by_name: frozenset[str] = frozenset()
    """Those that are passed by name only, unless a decorator may take them otherwise."""


UNKNOWN = Signature()


def signature(file: ProjectFile, call: ast.Call) -> Signature:
    """Of the callee, by its name; that of no parameters if it is not known."""
    return _signature(file, file.qualified(call.func), call)


def _signature(
    file: ProjectFile, dotted: str, call: ast.Call | None, ancestors: int = _ANCESTORS
) -> Signature:
    node, elsewhere = _defined_here(file, dotted, call)
    if elsewhere:
        return file.project.about(file, dotted, signature_of) or UNKNOWN
    return signature_of(file, node, ancestors) if node is not None else UNKNOWN


def signature_of(file: ProjectFile, node: ast.AST, ancestors: int = _ANCESTORS) -> Signature:
    """Of a function, or of the constructor of a class."""
    if isinstance(node, ast.ClassDef):
        made_by = [each for each in node.body if isinstance(each, SCOPES) and each.name in _MAKERS]
        if made_by:
            node = made_by[0]
        elif node.bases and ancestors:
            return _signature(file, file.qualified(node.bases[0]), None, ancestors - 1)
    if not isinstance(node, SCOPES):
        return UNKNOWN
    names = parameters(file, node) if node.args.vararg is None else ()
    of_gpu = (each.arg for each, said in with_defaults(node.args) if _is_gpu(node, each.arg, said))
    optional = {each.arg for each, _ in with_defaults(node.args)}
    plain = all(ast.unparse(each).endswith(_PLAIN) for each in node.decorator_list)
    needed = frozenset(names) - optional if plain else frozenset()
    chosen = frozenset(_with_chosen_default(node))
    return Signature(
        names,
        chosen,
        frozenset(of_gpu),
        needed,
        sent_parameters(file, node),
        written_states(file, node),
        loaded_states(file, node),
        frozenset(each.arg for each in node.args.kwonlyargs) if plain else frozenset(),
    )


def _is_gpu(function: FunctionNode, name: str, default: ast.expr) -> bool:
    """`"cuda:0"`, `torch.device("cuda")`, or `"auto"`, which is one where there is one, unless the
    function asks for that word itself and takes another device for it."""
    if isinstance(default, ast.Call) and ast.unparse(default.func).endswith("device"):
        default = default.args[0] if default.args else default
    said = default.value if isinstance(default, ast.Constant) else None
    if said == "auto":
        return not any(_compares(each, name) for each in ast.walk(function))
    is_gpu = isinstance(said, str) and said.partition(":")[0] == "cuda"
    return is_gpu and any(_reads(each, name) for each in ast.walk(function))


def _reads(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _compares(node: ast.AST, name: str) -> bool:
    """`name == "auto"`, or with a name that stands for it."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
        return False
    sides = (node.left, *node.comparators)
    return any(isinstance(each, ast.Name) and each.id == name for each in sides)


def _with_chosen_default(function: FunctionNode) -> Iterator[str]:
    for each, default in with_defaults(function.args):
        if not (isinstance(default, ast.Constant) and default.value is None):
            yield each.arg


def of_function(file: ProjectFile, node: ast.AST) -> tuple[str, ...]:
    """The parameters of a function, none of a class."""
    return parameters(file, node) if isinstance(node, SCOPES) else ()


def parameters(file: ProjectFile, function: FunctionNode) -> tuple[str, ...]:
    return params_of(function, isinstance(file.tree.parent(function), ast.ClassDef))


def annotated_return(file: ProjectFile, function: ast.AST) -> hints.Annotated:
    if not isinstance(function, SCOPES):
        return hints.NOTHING_SAID
    return hints.read(function.returns, file.qualified, file.kind_of_class_named)


def tensor_parameters(file: ProjectFile, function: ast.AST) -> frozenset[int | str | None]:
    """Positions and names of the parameters that a function annotates as tensors."""
    if not isinstance(function, SCOPES):
        return frozenset()
    wanted = parameters(file, function)
    given = function.args
    said = {
        each.arg: hints.read(each.annotation, file.qualified, file.kind_of_class_named)
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        if each.annotation is not None
    }
    tensors = [n for n in wanted if n in said and said[n].kinds and said[n].kinds <= TENSORS]
    return frozenset([*tensors, *(wanted.index(name) for name in tensors)])


def is_defined(file: ProjectFile, dotted: str) -> bool:
    """A function or class of the project that has this name, and no method."""
    if dotted.partition(".")[0] in ("", "self", "cls"):
        return False
    node, elsewhere = _defined_here(file, dotted, None)
    if elsewhere:
        return bool(file.project.about(file, dotted, _is_at_top))
    return node is not None and _is_at_top(file, node)


def _is_at_top(file: ProjectFile, node: ast.AST) -> bool:
    defined = isinstance(node, (ast.ClassDef, *SCOPES))
    return defined and file.tree.parent(node) is file.tree.root


def _defined_here(
    file: ProjectFile, dotted: str, call: ast.Call | None
) -> tuple[ast.AST | None, bool]:
    """What the name stands for in this file, or that it may stand for something of another."""
    first, _, rest = dotted.partition(".")
    if call is not None and first in ("self", "cls"):
        cls = file.tree.class_of(call)
        around = file.tree.qualname_of(cls) if cls is not None else ""
        return file.definition_named(f"{around}.{rest}"), False
    node = file.definition_named(file.local_name(dotted))
    return node, node is None and "." in dotted
