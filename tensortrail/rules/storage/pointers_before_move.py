from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import CASTS, MODULE_MOVES
from tensortrail.rules.shared.objects import called, given, is_before, receiver
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.storage._pointers import pointed_at

_MOVES = MODULE_MOVES | CASTS


class PointersBeforeMove(Rule):
    """Tensors of a model are looked up by addresses from before the model was moved.

    ## What it does
    Reports a look-up by `data_ptr()` in a table that was made from a model before the same function
    moved that model, or changed its type, and that was not made again.

    ## Why is this bad?
    Ties are treated as untied, or names go to the wrong parameters: a move gives every parameter
    new memory, so an old address is not found or belongs to another tensor. On the CPU, where
    `model.to("cpu")` moves nothing, it works.

    ## Fix safety
    No fix is offered: make the table after the move, or use names as keys.

    ## References
    - pytorch documentation of `torch.Tensor.data_ptr` and `torch.nn.Module.to`
    """

    code = "STO215"
    name = "pointers-before-move"
    severity = Severity.WARNING
    proven = False
    triggers = (("data_ptr", ".to("), ("data_ptr", ".cuda("))

    bad = (
        Bad(
            """\
def names_after_move(model, device):
    names = {p.data_ptr(): name for name, p in model.named_parameters()}
    model.to(device)
    return [names[p.data_ptr()] for p in model.parameters()]
""",
            lines=(4,),
            instead="""\
def names_after_move(model, device):
    model.to(device)
    names = {p.data_ptr(): name for name, p in model.named_parameters()}
    return [names[p.data_ptr()] for p in model.parameters()]
""",
        ),
        Bad(
            """\
def tied(model):
    found = {}
    for name, p in model.named_parameters(remove_duplicate=False):
        found.setdefault(p.data_ptr(), []).append(name)
    return found

def check(model):
    known = tied(model)
    model = model.cuda()
    for name, p in model.named_parameters():
        if p.data_ptr() not in known:
            raise RuntimeError(name)
""",
            lines=(11,),
        ),
    )
    good = (
        Good(
            """\
def made_again(model, device):
    known = {p.data_ptr() for p in model.parameters()}
    model.to(device)
    known = {p.data_ptr() for p in model.parameters()}
    return all(p.data_ptr() in known for p in model.parameters())

def of_another(model, other, device):
    known = {p.data_ptr() for p in model.parameters()}
    other.to(device)
    return all(p.data_ptr() in known for p in model.parameters())

def before_the_move(model, device):
    known = {p.data_ptr() for p in model.parameters()}
    tied = [p.data_ptr() in known for p in model.head.parameters()]
    model.to(device)
    return tied
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for table, at in _look_ups(module):
            stale = _made_before_move(module, table)
            if stale is not None:
                yield self._reported(module, table, at, stale)

    def _reported(self, module: Module, table: ast.Name, at: ast.expr, stale: _Stale) -> Finding:
        shown = one_line(module, stale.move)
        return self.finding(
            module,
            at,
            f"`{table.id}` has the addresses from before line {stale.move.lineno}, where `{shown}` "
            "gives the parameters new ones",
            trail=[
                (stale.made, "addresses are kept"),
                (stale.move, "the tensors get other memory"),
            ],
        )


class _Stale(NamedTuple):
    made: ast.expr
    move: ast.Call


def _look_ups(module: Module) -> Iterator[tuple[ast.Name, ast.expr]]:
    """`table[p.data_ptr()]`, `table.get(p.data_ptr())` and `p.data_ptr() in table`."""
    for table, key, at in _asked_tables(module):
        if isinstance(table, ast.Name) and pointed_at(module, key) is not None:
            yield table, at


def _asked_tables(module: Module) -> Iterator[tuple[ast.expr | None, ast.expr, ast.expr]]:
    for part in module.nodes(ast.Subscript):
        if isinstance(part.ctx, ast.Load):
            yield part.value, part.slice, part
    for call in module.calls("get"):
        if call.args:
            yield receiver(call), call.args[0], call
    for asked in module.nodes(ast.Compare):
        if isinstance(asked.ops[0], (ast.In, ast.NotIn)):
            yield asked.comparators[0], asked.left, asked


def _made_before_move(module: Module, table: ast.Name) -> _Stale | None:
    """What the table was made of, if that was moved between."""
    origins = module.value_of(table).origins
    if len(origins) != 1:
        return None
    made, looked_up = origins[0], module.statement_of(table)
    for move in module.later(module.statement_of(made), ast.Call):
        owner, statement = receiver(move), module.statement_of(move)
        if called(move) not in _MOVES or owner is None or not is_before(statement, looked_up):
            continue
        whole = isinstance(statement, (ast.Assign, ast.Expr)) and statement.value is move
        if whole and _is_of_parameters(module, made, owner):
            return _Stale(made, move)
    return None


def _is_of_parameters(module: Module, made: ast.expr, model: ast.expr) -> bool:
    """It goes over what the model has, or a function is given the model."""
    shown = module.text(model)
    over = any(
        each.attr in ("parameters", "named_parameters", "buffers", "named_buffers", "state_dict")
        and module.text(each.value) == shown
        for each in module.nodes(ast.Attribute, made)
    )
    return over or (isinstance(made, ast.Call) and shown in map(module.text, given(made)))
