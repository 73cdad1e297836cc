"""Facts about classes: wrapper subclasses, the ops they answer, modules, ancestors."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.facts.dispatched_ops import (
    ClassFile,
    ops_compared,
    ops_registered,
    rewraps_rest_of,
)
from tensortrail.analyzer.syntax.names import dotted_name
from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.rules.project_facts import ClassFacts
from tensortrail.rules.words import Kind

MOST_ANCESTORS = 64
DISPATCH = "__torch_dispatch__"
_MAKES = frozenset("__new__ _make_wrapper_subclass _make_subclass as_subclass cls".split())
"""Functions that give an object of the class that is being written."""


def own_facts(file: ClassFile, node: ast.ClassDef) -> ClassFacts:
    """What the class says by itself, without its ancestors."""
    methods = [each for each in node.body if isinstance(each, SCOPES)]
    dispatch = next((each for each in methods if each.name == DISPATCH), None)
    name = ".".join(filter(None, (file.name, file.tree.qualname_of(node))))
    is_wrapper = any(_makes_wrapper(file.tree, node, method) for method in methods)
    handles = set(ops_registered(file, node, is_wrapper or dispatch is not None))
    handles |= known.LIBRARY_HANDLES.get(node.name, frozenset())
    if dispatch is not None:
        handles.update(ops_compared(file, dispatch))
    return ClassFacts(
        name=name,
        bases=tuple(filter(None, (file.qualified(base) for base in node.bases))),
        is_wrapper=is_wrapper,
        handles=frozenset(handles),
        rewraps_rest=dispatch is not None and rewraps_rest_of(file, dispatch),
        raises_rest=dispatch is not None and isinstance(dispatch.body[-1], ast.Raise),
        takes=frozenset(_taken(methods)),
        methods=frozenset(each.name for each in methods),
        fields=frozenset(_fields(file.tree, node)),
        registered=frozenset(_registered(file, node)),
        registers_others=any(
            not isinstance(each, ast.Constant) for each in _names_given(file.tree, node)
        ),
        file=file.path,
        line=node.lineno,
    )


def with_ancestors(own: ClassFacts, look_up: Callable[[str], ClassFacts | None]) -> ClassFacts:
    """The same with everything inherited. `look_up` gives complete facts of a base."""
    bases: dict[str, None] = {}
    found = [own]
    complete = True
    for name in own.bases:
        bases[name] = None
        base = look_up(name)
        if base is None:
            complete = False
            continue
        if len(base.bases) >= MOST_ANCESTORS:
            base = _summary(base)
        complete &= base.complete
        bases.update(dict.fromkeys(base.bases))
        found.append(base)
    dispatching = next((each for each in found if DISPATCH in each.methods), own)
    return ClassFacts(
        name=own.name,
        bases=tuple(bases),
        is_module=any(each.is_module for each in found),
        is_wrapper=any(each.is_wrapper for each in found),
        handles=frozenset().union(*(each.handles for each in found)),
        rewraps_rest=dispatching.rewraps_rest,
        raises_rest=dispatching.raises_rest
        or (DISPATCH not in dispatching.methods and "TorchAOBaseTensor" in "".join(bases)),
        takes=frozenset().union(*(each.takes for each in found)),
        methods=frozenset().union(*(each.methods for each in found)),
        fields=frozenset().union(*(each.fields for each in found)),
        registered=frozenset().union(*(each.registered for each in found)),
        registers_others=any(each.registers_others for each in found),
        complete=complete,
        file=own.file,
        line=own.line,
    )


def _summary(far: ClassFacts) -> ClassFacts:
    """What a class is, without what it has: for one at the end of a long line of ancestors."""
    return ClassFacts(
        far.name,
        far.bases[-1:],
        is_module=far.is_module,
        is_wrapper=far.is_wrapper,
        rewraps_rest=far.rewraps_rest,
        raises_rest=far.raises_rest,
    )


def library_facts(name: str) -> ClassFacts | None:
    """A class outside the project, by its name alone."""
    last = name.rpartition(".")[2]
    if known.MODULE_BASES.search(name):
        return ClassFacts(name, ("torch.nn.Module",), is_module=True, complete=True)
    if last in known.WRAPPER_BASES:
        return ClassFacts(
            name,
            ("torch.Tensor",),
            is_wrapper=True,
            handles=known.LIBRARY_HANDLES.get(last, frozenset()),
        )
    if name in known.PLAIN_BASES:
        bases = ("torch.Tensor",) if name in ("torch.Tensor", "torch.nn.Parameter") else ()
        return ClassFacts(name, bases, complete=True, is_module=name == "torch.nn.Module")
    return None


def _makes_wrapper(
    tree: Tree, cls: ast.ClassDef, method: ast.FunctionDef | ast.AsyncFunctionDef
) -> bool:
    """It makes one of its own class, which is its first argument."""
    own = {each.arg for each in method.args.args[:1]} | {"cls", cls.name}
    calls = (
        each
        for each in tree.nodes(ast.Call, method)
        if isinstance(each.func, ast.Attribute) and each.func.attr == "_make_wrapper_subclass"
    )
    return any(not each.args or getattr(each.args[0], "id", "") in own for each in calls)


def _taken(methods: Iterable[ast.FunctionDef | ast.AsyncFunctionDef]) -> Iterable[str]:
    for method in methods:
        if method.name in ("__new__", "__init__"):
            for each in (*method.args.args[1:], *method.args.kwonlyargs):
                yield each.arg


def _fields(tree: Tree, node: ast.ClassDef) -> Iterable[str]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id
    own = _own_names(tree, node)
    for below in tree.nodes(ast.Attribute, node):
        if (
            isinstance(below.ctx, ast.Store)
            and isinstance(below.value, ast.Name)
            and below.value.id in own
        ):
            yield below.attr


def _own_names(tree: Tree, node: ast.ClassDef) -> set[str]:
    """What the object is called in its class: `self`, and what a constructor gives."""
    made = (each for each in tree.nodes(ast.Assign, node) if isinstance(each.value, ast.Call))
    return {"self"} | {
        target.id
        for each in made
        for target in each.targets
        if isinstance(target, ast.Name) and dotted_name(each.value).rpartition(".")[2] in _MAKES
    }


def _registered(file: ClassFile, cls: ast.ClassDef) -> Iterable[str]:
    """Names that the class makes a parameter, a buffer or a submodule under."""
    for name in _names_given(file.tree, cls):
        if isinstance(name, ast.Constant):
            yield str(name.value)
    for target, value in _assigned(file.tree, cls):
        if isinstance(target, ast.Attribute) and (
            file.qualified(value) in ("torch.nn.Parameter", "torch.nn.Buffer")
        ):
            yield target.attr


def _names_given(tree: Tree, cls: ast.ClassDef) -> Iterator[ast.expr]:
    """`"mean"` of `self.register_buffer("mean", ...)`."""
    for call in tree.nodes(ast.Call, cls):
        if call.args and dotted_name(call.func).rpartition(".")[2] in known.REGISTERING:
            yield call.args[0]


def _assigned(tree: Tree, cls: ast.ClassDef) -> Iterator[tuple[ast.expr, ast.expr]]:
    for plain in tree.nodes(ast.Assign, cls):
        yield from ((target, plain.value) for target in plain.targets)
    for annotated in tree.nodes(ast.AnnAssign, cls):
        if annotated.value is not None:
            yield annotated.target, annotated.value


def kind_of_class(facts: ClassFacts | None) -> Kind | None:
    """Of its instances; None where that is not known."""
    if facts is None:
        return None
    if facts.is_wrapper:
        return Kind.WRAPPER_TENSOR
    if facts.is_module:
        return Kind.MODULE
    if "torch.Tensor" in facts.bases:
        return Kind.TENSOR
    return Kind.OTHER if facts.complete else None
