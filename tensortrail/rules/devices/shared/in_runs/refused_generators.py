"""Generators that an operation of a recorded run refused, and the lines that made them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.findings import Edit, Fix, Site
from tensortrail.rules import Event, Timeline
from tensortrail.rules.shared.failures import errors
from tensortrail.rules.shared.mends import edited, source_of, statement_of
from tensortrail.rules.shared.objects import all_given, called, keyword
from tensortrail.rules.unchanging import unchanging

_REFUSED = re.compile(r"Expected a '(\w+)' device type for generator but found '(\w+)'")
_SAMPLERS = "torch/utils/data/"
_MAKERS = ("Generator", "manual_seed")


@unchanging(frozen=True, slots=False)
class Refused:
    events: Sequence[Event]
    wanted: str
    given: str
    name: str = ""
    """How the program calls the generator; empty if its line does not tell."""
    maker: ast.Call | None = None
    """What made it: `torch.Generator()`, or `torch.manual_seed(0)`."""
    loader: ast.Call | None = None
    """What made the DataLoader that shuffles with it, if the program gave it none."""


def refused_generators(timeline: Timeline) -> Iterator[Refused]:
    for events in errors(timeline, _REFUSED):
        found = _REFUSED.search(str(events[0].facts.get("message", "")))
        if found is not None:
            yield _refused(timeline, events, found[1], found[2])


def on_the_device(timeline: Timeline, site: Site | None, refused: Refused) -> Fix:
    if site is not None and refused.loader is not None:
        given = f'generator=torch.Generator(device="{refused.wanted}")'
        last = all_given(refused.loader)[-1]
        more = f"{source_of(timeline, site.file, last)}, {given}"
        return edited(
            timeline, f"give the loader `{given}`", timeline.replace(site.file, last, more)
        )
    text = (
        f'make it one of that device, `torch.Generator(device="{refused.wanted}")`, or draw on the '
        f"{_spoken(refused.given)} and move the result, which gives the same numbers on every "
        "machine"
    )
    edit = None
    if site is not None and refused.maker is not None:
        edit = _made_there(timeline, site.file, refused.maker, refused.wanted)
    return edited(timeline, text, edit)


def spoken(refused: Refused) -> str:
    """The generator, and where it comes from."""
    if refused.loader is not None:
        made = f"the DataLoader made at line {refused.loader.lineno}"
        return f"{made} shuffles with a generator on the {_spoken(refused.given)}"
    name = f"`{refused.name}`" if refused.name else "the generator"
    made = f", made at line {refused.maker.lineno}," if refused.maker is not None else ""
    return f"{name}{made} is on the {_spoken(refused.given)}"


def _spoken(device: str) -> str:
    return {"cpu": "CPU", "cuda": "GPU"}.get(device, f"`{device}` device")


def _refused(timeline: Timeline, events: Sequence[Event], wanted: str, given: str) -> Refused:
    site = events[0].site
    statement = statement_of(timeline, site)
    passed = _passed(statement) if statement is not None else None
    tree = timeline.tree(site.file) if site is not None else None
    if tree is None or site is None:
        return Refused(events, wanted, given)
    if passed is None:
        shuffles = events[0].by is not None and _SAMPLERS in events[0].by.file.replace("\\", "/")
        loader = _loader(tree, site.line) if shuffles else None
        return Refused(events, wanted, given, loader=loader)
    inline = _maker_in(passed)
    name = "" if inline is not None else ast.unparse(passed)
    return Refused(events, wanted, given, name, inline or _made(tree, name, passed.lineno))


def _passed(statement: ast.stmt) -> ast.expr | None:
    calls = (each for each in ast.walk(statement) if isinstance(each, ast.Call))
    given = (keyword(call, "generator") for call in calls)
    return next((each for each in given if each is not None), None)


def _loader(tree: ast.Module, line: int) -> ast.Call | None:
    """What made the DataLoader that the line goes through."""
    here = {
        each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and each.lineno == line
    }
    found = [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call)
        if called(each.value).endswith("DataLoader") and all_given(each.value)
        if here.intersection(map(ast.unparse, each.targets))
    ]
    return found[0] if len(found) == 1 else None


def _made(tree: ast.Module, name: str, before: int) -> ast.Call | None:
    """What was last assigned to that name above the line."""
    made = [
        maker
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and each.lineno < before
        if any(ast.unparse(target) == name for target in each.targets)
        if (maker := _maker_in(each.value)) is not None
    ]
    return max(made, key=lambda each: each.lineno, default=None)


def _maker_in(value: ast.expr) -> ast.Call | None:
    """The innermost: `torch.Generator().manual_seed(0)` is made by its first call."""
    calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
    makers = [each for each in calls if called(each) in _MAKERS]
    return makers[-1] if makers else None


def _made_there(timeline: Timeline, file: str, maker: ast.Call, device: str) -> Edit:
    written = f'"{device}"'
    if called(maker) != "Generator":
        return timeline.replace(file, maker.func, f"torch.Generator({written}).manual_seed")
    given = [*maker.args, *(each.value for each in maker.keywords if each.arg == "device")]
    if given:
        return timeline.replace(file, given[0], written)
    return timeline.replace(file, maker, f"{source_of(timeline, file, maker.func)}({written})")
