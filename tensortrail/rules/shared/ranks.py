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
    r"rank|process_index|is_(?:(?:local_|global_)?main|last|world|global|master)|ordinal|getenv|environ",
    re.IGNORECASE,
)
"""One of these is in a name of all that the patterns and names above find."""
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
    return _is_on(module.once(_lines_about_ranks, module.top), test)


def _lines_about_ranks(module: Module, _: ast.AST) -> set[int]:
    """Lines with such a word, and with what is bound to one of them."""
    lines: set[int] = set()
    left = list(_bindings(module))
    new = {each for each in _words(module) if _WORDS.search(each)}
    while new:
        lines.update(node.lineno for node in _with_words(module, new))
        new, rest = set(), []
        for targets, value in left:
            if _is_on(lines, value):
                new.update(_names(targets))
            else:
                rest.append((targets, value))
        left = rest
    return lines


def _is_on(lines: set[int], node: ast.expr) -> bool:
    return not lines.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _words(module: Module) -> set[str]:
    """Names and attributes of the file."""
    names = {each.id for each in module.nodes(ast.Name)}
    return names.union(each.attr for each in module.nodes(ast.Attribute))


def _with_words(module: Module, words: set[str]) -> Iterator[ast.expr]:
    for each in words:
        yield from module.uses(each)
        yield from module.members(each)


def _bindings(module: Module) -> Iterator[tuple[Sequence[ast.expr], ast.expr]]:
    yield from ((each.targets, each.value) for each in module.nodes(ast.Assign))
    yield from (([each.target], each.value) for each in module.nodes(ast.NamedExpr))


def _names(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """Of the variables and attributes that are bound."""
    for each in (inside for node in nodes for inside in ast.walk(node)):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            yield each.attr


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
