from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import chain

from tensortrail.findings import Finding, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import excluded, same
from tensortrail.rules.devices.shared.meetings.described import described
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import Held, Meeting, Place, What, Where
from tensortrail.rules.shared.dtypes import is_cast
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE

_ABOUT_THE_VALUE = pattern(r"\bis None\b|isinstance|is_tensor|hasattr|in the function called")


class MovedOnOnePath(Rule):
    """A tensor is moved in one branch only, and used afterwards as if it always were.

    ## What it does
    Reports, as a note, an operation on two tensors: one is on a device on every path, the other was
    moved there under a condition that is not about the tensor itself. On the other path it is where
    it was made, or where the caller put it.

    ## Why is this bad?
    On a GPU, the operation raises with the settings that skip the move. On the CPU everything
    works.

    ## Fix safety
    No fix is offered: the move belongs after the branches, or into the other one too.

    ## References
    - pytorch documentation of `torch.Tensor.to`
    """

    code = "DEV523"
    name = "moved-on-one-path"
    since = "0.2.0"
    severity = Severity.NOTE
    needs_callers = True
    triggers = (("torch", ".to(", "if "), ("torch", ".cuda(", "if "))
    bad = (
        Bad(
            "import torch\n\n\n"
            "def noise(sigmas: torch.Tensor, smooth: bool, n: int, device: torch.device):\n"
            "    if smooth:\n        sigmas = sigmas.cumsum(0).to(device)\n"
            "    start = torch.randn(n, device=device)\n    return start * sigmas\n",
            lines=(8,),
            instead="""\
import torch


def noise(sigmas: torch.Tensor, smooth: bool, n: int, device: torch.device):
    if smooth:
        sigmas = sigmas.cumsum(0)
    sigmas = sigmas.to(device)
    start = torch.randn(n, device=device)
    return start * sigmas
""",
        ),
        Bad(
            "import torch\n\n\n"
            "def noise(sigmas: torch.Tensor, plain: bool, n: int, device: torch.device):\n"
            "    if plain:\n        steps = sigmas\n    else:\n"
            "        steps = sigmas.cumsum(0).to(device)\n"
            "    return torch.randn(n, device=device) * steps\n",
            lines=(9,),
        ),
    )
    good = (
        Good(
            "import torch\n\n\n"
            "def noise(sigmas: torch.Tensor, n: int, device: torch.device):\n"
            "    if sigmas.device != device:\n        sigmas = sigmas.to(device)\n"
            "    return torch.randn(n, device=device) * sigmas\n"
        ),
        Good(
            "import torch\n\n\n"
            "def noise(sigmas: torch.Tensor, smooth: bool, n: int, device: torch.device):\n"
            "    if smooth:\n        sigmas = sigmas.cumsum(0).to(device)\n    if smooth:\n"
            "        return torch.randn(n, device=device) * sigmas\n    return sigmas\n"
        ),
        Good(
            "import torch\n\n\n"
            "def noise(sigmas: torch.Tensor, smooth: bool, n: int, device: torch.device):\n"
            "    if smooth:\n        sigmas = sigmas.cumsum(0).to(device)\n"
            "    else:\n        sigmas = sigmas.to(device)\n"
            "    return torch.randn(n, device=device) * sigmas\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        for function in outermost(module, _moves_in_branches(module)):
            places = module.places(function)
            for meeting in places.meetings:
                for held, other in meeting.pairs:
                    found = _moved_somewhere(meeting, held, other)
                    if found is None or found[0].by is None or found[0].by in reported:
                        continue
                    if _is_taken_too(meeting, places.meetings, found[1]):
                        continue
                    reported.add(found[0].by)
                    yield self._reported(module, meeting, *found)

    def _reported(self, module: Module, meeting: Meeting, moved: Place, left: Place) -> Finding:
        assert moved.by is not None
        line = getattr(moved.by, "lineno", 0)
        return self.finding(
            module,
            meeting.node,
            f"one operand was moved on line {line} only if `{moved.given}`; otherwise this "
            f"combines a tensor {described(left)} with one {described(moved)}",
            trail=(
                (moved.by, f"moved here, if `{moved.given}`"),
                (meeting.node, f"used with a tensor {described(moved)} on every path"),
            ),
        )


def _is_taken_too(meeting: Meeting, others: Sequence[Meeting], left: Place) -> bool:
    """The same call takes the other tensor as it is: the two lie together anyway."""
    return any(
        held.only is not None and same(held.only, left) and not held.only.given
        for each in others
        if each.node is meeting.node
        for held in (each.left, each.right)
    )


def _moves_in_branches(module: Module) -> Iterator[ast.Call]:
    for call in module.calls(*TO_DEVICE):
        if is_cast(module, call):
            continue
        statement = module.statement_of(call)
        chosen = bool(module.nodes(ast.IfExp, statement))
        if isinstance(statement, ast.Return) and not chosen:
            continue  # nothing comes after it
        start = call if chosen else statement
        around = chain([start], module.ancestors(start))
        if any(isinstance(each, (ast.If, ast.IfExp)) for each in around):
            yield call


def _moved_somewhere(meeting: Meeting, held: Held, other: Held) -> tuple[Place, Place] | None:
    """The place it was moved to, and the place it has where it was not."""
    there = other.only
    if there is None or there.given or held.what is not What.TENSOR or len(held.places) != 2:
        return None
    if other.what is not What.TENSOR or is_legal(meeting, held):
        return None
    if there.where not in (Where.DEVICE, Where.OF, Where.LITERAL) or there.subject == "cpu":
        return None
    for moved, left in (held.in_order, held.in_order[::-1]):
        if not same(moved, there) or same(left, there) or not _is_a_move(moved.by):
            continue
        if _is_a_move(left.by):
            continue
        if left.where not in (Where.OF, Where.DEFAULT, Where.HOST) or not _conditional(moved):
            continue
        if not _conditional(left) or excluded(meeting, left) or moved.given in meeting.conditions:
            continue
        if left.where is Where.OF and there.where is not Where.LITERAL:
            root = left.subject.partition(".")[0]
            if there.subject.partition(".")[0] == root:
                continue
        return moved, left
    return None


def _conditional(place: Place) -> bool:
    return bool(place.given) and not _ABOUT_THE_VALUE.search(place.given)


def _is_a_move(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in TO_DEVICE
    )
