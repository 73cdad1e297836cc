"""Keys of a state dict that have a name before them which those of the model lack, or lack one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.shared.mends import (
    edited,
    line_behind,
    source_of,
    statement_of,
)
from tensortrail.rules.timeline import Timeline

MOST_LOOKED_AT = 4
WRAPPERS = {
    "_orig_mod": "torch.compile",
    "module": "a parallel wrapper",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
}


class Prefix(NamedTuple):
    name: str
    """Without its last dot."""
    is_given: bool
    """The state dict has it; else the model."""

    @property
    def wrappers(self) -> list[str]:
        """Who gives such names; none if one of them is no wrapper's."""
        parts = self.name.split(".")
        return [WRAPPERS[each] for each in parts] if set(parts) <= WRAPPERS.keys() else []

    @property
    def words(self) -> str:
        who, one = self.wrappers, "name" if "." not in self.name else "names"
        if not who:
            return f"the {one} under which another module holds this one"
        gives = "gives" if len(who) == 1 else "give"
        return f"the {one} that {' and '.join(who)} {gives} to the module inside"


def refused(message: str) -> Prefix | None:
    """Of a message that lists the keys."""
    return prefix_of(*listed(message))


def listed(message: str) -> tuple[list[str], list[str]]:
    """The missing and the unexpected keys that a refused load names."""
    missing, unexpected = (
        [
            key
            for line in message.splitlines()
            if line.strip().startswith(f"{kind} key(s)")
            for key in re.findall(r'"([^"]+)"', line)
        ]
        for kind in ("Missing", "Unexpected")
    )
    return missing, unexpected


def prefix_of(missing: Sequence[str], unexpected: Sequence[str]) -> Prefix | None:
    """What the keys of one side have before those of the other."""
    for is_given, longer, shorter in ((True, unexpected, missing), (False, missing, unexpected)):
        for name in dict.fromkeys(_before(longer, set(shorter))):
            found = Prefix(name, is_given)
            bare = {each.removeprefix(f"{name}.") for each in longer}
            begins = all(each.startswith(f"{name}.") for each in longer)
            if begins and (bare & set(shorter) if found.wrappers else bare == set(shorter)):
                return found
            if is_given and found.wrappers and set(shorter) <= bare:  # beside counts of its own
                return found
    return None


def _before(longer: Sequence[str], shorter: set[str]) -> Iterator[str]:
    for each in longer[:MOST_LOOKED_AT]:
        parts = each.split(".")
        for count in range(1, len(parts)):
            if ".".join(parts[count:]) in shorter:
                yield ".".join(parts[:count])


def fits_at_load(timeline: Timeline, site: Site | None, prefix: Prefix) -> Fix:
    """The load itself, with the keys or the module that fit."""
    if prefix.is_given:
        text = "remove the prefix from the keys where they are loaded"
        given = timeline.argument(site, "load_state_dict") if site else None
        edit = Edit(given, _cut(given.source, prefix.name)) if given is not None else None
    else:
        text = f"load it into the module inside: `.{prefix.name}`"
        edit = _into_inner(timeline, site, prefix.name) if site else None
    return edited(timeline, text, edit)


def _cut(source: str, name: str) -> str:
    return f'{{key.removeprefix("{name}."): value for key, value in {source}.items()}}'


def _into_inner(timeline: Timeline, site: Site, name: str) -> Edit | None:
    tree = timeline.tree(site.file)
    inner = f"self.{name}"
    for node in ast.walk(tree) if tree else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="load_state_dict", value=owner)):
                if node.lineno <= site.line <= (node.end_lineno or 0) and _is_path(inner):
                    text = f"{source_of(timeline, site.file, owner)}.{name}"
                    return timeline.replace(site.file, owner, text)
    return None


def _is_path(name: str) -> bool:
    return all(each.isidentifier() for each in name.split("."))


def cut_behind(timeline: Timeline, made: Site | None, variable: str, name: str) -> Fix:
    """The variable's keys without the prefix, behind the line that gives it its value."""
    text = f"remove the prefix from the keys of `{variable}`"
    statement = statement_of(timeline, made)
    if made is None or not isinstance(statement, ast.Assign):
        return Fix(text, Safety.DISPLAY, ())
    line = f"{variable} = {_cut(variable, name)}"
    edit = line_behind(timeline, made.file, statement, line)
    return edited(timeline, text, edit)
