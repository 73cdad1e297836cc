"""Conditions that hold for some of the processes of a run and not for others."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Iterator, Sequence

from tensortrail.patterns import pattern
from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.shared.origins import behind, kept_behind
from tensortrail.rules.view import Module

_RANK = pattern(
    r"\b(?:(?:self|args|cfg|config|dist|torch\.distributed|\w+)\.)*"
    r"(?:global_rank|rank|get_rank\(\)|process_index|local_process_index|local_rank|node_rank"
    r"|get_local_rank\(\)|get_global_rank\(\))\s*(?:(?:==|!=) (?!-|None)|(?:not )?in [\[({]-1, 0)"
    r"|\bis_(?:main|local_main|global_main|last|world|global|rank)_?(?:process|rank|zero|master)"
    r"(?:_zero)?\b|\bis_(?:master|rank0|rank_0|main)(?:_proc|_worker|_node)?\b"
)
"""`rank == 0` and the names that stand for it: that of a parameter is all that tells of it."""
_ABOVE_ZERO = pattern(r"rank(?:\(\))? (?:<|>(?!= 0))|\b0 < \w*rank\b")
_NAMED = pattern(r"(?:^|_)rank$|process_index$")
_GIVES = frozenset("get_rank get_local_rank get_global_rank get_node_rank get_ordinal".split())
_HOLDS = frozenset("process_index local_process_index global_rank local_rank".split())
_VARIABLES = frozenset({"RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
_WORDS = pattern(
    r"rank|process_index|is_(?:(?:local_|global_)?main|last|world|global|master)|ordinal|procid",
    re.IGNORECASE,
)
"""One of these is in all that the patterns and names above find."""
_DEEPEST = 6


def asks_for_rank(module: Module, test: ast.expr, depth: int = _DEEPEST) -> bool:
    """The condition is true for some of the processes and false for others."""
    if not may_be_about_ranks(module, test):
        return False
    asked = behind(module, test)
    if isinstance(asked, ast.UnaryOp) and isinstance(asked.op, ast.Not):
        return depth > 0 and asks_for_rank(module, asked.operand, depth - 1)
    if isinstance(asked, ast.BoolOp):
        deeper = depth > 0 and isinstance(asked.op, ast.And)  # `loud = loud and rank == 0`
        return deeper and any(asks_for_rank(module, each, depth - 1) for each in asked.values)
    return bool(_RANK.search(_shown(module, asked)))


def mentions_rank(module: Module, test: ast.expr) -> bool:
    """Another way to ask for the rank: with other questions, or `rank > 0`."""
    if not may_be_about_ranks(module, test):
        return False
    shown = _shown(module, test)
    return bool(_RANK.search(shown) or _ABOVE_ZERO.search(shown))


def is_rank(module: Module, node: ast.AST) -> bool:
    """The number of the process, by what gives it or by its name: `self.global_rank`."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value in _VARIABLES
    gives = isinstance(node, ast.expr) and _gives_rank(module, node)
    return gives or _NAMED.search(last_name(node)) is not None


def may_be_about_ranks(module: Module, test: ast.expr) -> bool:
    """By the words alone, which are read much faster than values are followed."""
    if _WORDS.search(module.text(test)):
        return True
    named = module.once(_bound_by_ranks, module.top)
    return not named.isdisjoint(_names([test]))


def _bound_by_ranks(module: Module, _: ast.AST) -> frozenset[str]:
    """Names and attributes of the file that are bound to something with such a word, or to what has
    one of these names."""
    bound = [
        (_names(targets), _names([value]), _WORDS.search(module.text(value)))
        for targets, value in _bindings(module)
    ]
    found: set[str] = set()
    while more := {
        name
        for targets, values, word in bound
        if word or values & found
        for name in targets - found
    }:
        found |= more
    return frozenset(found)


def _bindings(module: Module) -> Iterator[tuple[Sequence[ast.expr], ast.expr]]:
    yield from ((each.targets, each.value) for each in module.nodes(ast.Assign))
    yield from (([each.target], each.value) for each in module.nodes(ast.NamedExpr))


def _names(nodes: Iterable[ast.expr]) -> set[str]:
    inside = (each for node in nodes for each in ast.walk(node))
    return {_name(each) for each in inside} - {""}


def _name(node: ast.AST) -> str:
    """Of a variable or attribute."""
    return str(getattr(node, "id", "") or getattr(node, "attr", ""))


def _shown(module: Module, test: ast.expr) -> str:
    """The text, with `rank` for every variable that was bound to one."""
    ranks = {
        ast.unparse(each)
        for each in ast.walk(test)
        if isinstance(each, (ast.Name, ast.Attribute))
        and _gives_rank(module, kept_behind(module, each))
    }
    return ast.unparse(_Named(ranks).visit(copy.deepcopy(test)) if ranks else test)


class _Named(ast.NodeTransformer):
    def __init__(self, ranks: set[str]) -> None:
        self._ranks = ranks

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("rank") if node.id in self._ranks else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.Name("rank") if ast.unparse(node) in self._ranks else self.generic_visit(node)


def _gives_rank(module: Module, made: ast.expr) -> bool:
    """`dist.get_rank()`, `int(os.environ["RANK"])`, `accelerator.process_index`"""
    made = number(module, made)
    match made:
        case ast.Call():
            return called(made) in _GIVES or variable_read(module, made) in _VARIABLES
        case ast.Attribute(attr=attribute):
            return attribute in _HOLDS
    return variable_read(module, made) in _VARIABLES


def number(module: Module, made: ast.expr) -> ast.expr:
    """What is made into a number: the argument of `int(...)`."""
    if isinstance(made, ast.Call) and called(made) == "int" and made.args:
        return behind(module, made.args[0])
    return made


def variable_read(module: Module, made: ast.expr) -> object:
    """The name of the variable of the environment: `os.environ["RANK"]`, `os.getenv("RANK")`."""
    match made:
        case ast.Call(func=function, args=[name, *_]):
            of_system = module.qualified(function) in ("os.environ.get", "os.getenv")
        case ast.Subscript(value=owner, slice=name):
            of_system = module.qualified(owner) == "os.environ"
        case _:
            return None
    return module.value_of(name).constant if of_system else None
