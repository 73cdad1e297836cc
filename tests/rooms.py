"""The rooms of the package and who imports whom.

`python -m tests.rooms` draws them anew in docs/how-it-works.md;
`python -m tests.rooms analyzer/places` lists the files of a folder in the order to read them in."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import tensortrail

ROOT = Path(tensortrail.__file__).parent
PAGE = ROOT.parent / "docs" / "how-it-works.md"
BEGINS, ENDS = "<!-- rooms: written by `python -m tests.rooms` -->\n", "<!-- end of rooms -->\n"
DIVIDED = ("analyzer", "tracer")
"""Layers that have rooms of their own."""
Graph = dict[str, set[str]]


@functools.cache
def imports(path: Path) -> set[str]:
    """Every module imported anywhere in the file, late and type-only imports too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@functools.cache
def graph() -> Graph:
    """Each module of the package with those it imports."""
    files = {module_of(path): path for path in ROOT.rglob("*.py")}
    return {module: set(_ours(module, path, files)) for module, path in files.items()}


def _ours(module: str, path: Path, files: dict[str, Path]) -> Iterator[str]:
    for name in imports(path):
        found = name if name in files else name.rpartition(".")[0]
        if found in files and found != module:
            yield found


def circles(arrows: Graph) -> list[list[str]]:
    """The modules that import each other, directly or by others between them."""
    reached = {module: _reached(arrows, module) for module in arrows}
    found = {
        tuple(sorted({other for other in reached[module] if module in reached[other]}))
        for module in arrows
        if module in reached[module]
    }
    return [list(each) for each in sorted(found)]


def _reached(arrows: Graph, module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        new = arrows[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def room_of(module: str) -> str:
    """`tracer.hooks`, `analyzer.values`, `rules`; "" for the package itself."""
    parts = module.split(".")[1:]
    inside = parts[:1] in [[each] for each in DIVIDED] and (ROOT / "/".join(parts[:2])).is_dir()
    return ".".join(parts[: 2 if inside else 1])


def picture() -> str:
    """The rooms as mermaid draws them. What follows from other arrows has none of its own."""
    arrows: Graph = {}
    for module, others in graph().items():
        for one, other in ((room_of(module), room_of(each)) for each in others):
            if one != other and _is_drawn(one) and _is_drawn(other):
                arrows.setdefault(one, set()).add(other)
                arrows.setdefault(other, set())
    drawn = [(one, other) for one in sorted(arrows) for other in sorted(_nearest(arrows, one))]
    lines = ["```mermaid", "flowchart TD"]
    lines += [f"  {room}" for room in sorted(arrows) if "." not in room]
    for layer in DIVIDED:
        inside = [room for room in sorted(arrows) if room.startswith(f"{layer}.")]
        lines += [f"  subgraph {layer}"]
        lines += [f"    {_id(room)}[{room.partition('.')[2]}]" for room in inside]
        lines += ["  end"]
    lines += [f"  {_id(one)} --> {_id(other)}" for one, other in drawn]
    return "\n".join([*lines, "```", ""])


def _id(room: str) -> str:
    return room.replace(".", "_")


def _nearest(arrows: Graph, room: str) -> set[str]:
    """What the room imports, without what is imported on the way there as well."""
    further = [_reached(arrows, other) for other in arrows[room]]
    return arrows[room].difference(*further)


def _is_drawn(room: str) -> bool:
    """Folders; files beside them are few and everybody's."""
    return bool(room) and (ROOT / room.replace(".", "/")).is_dir() and room not in DIVIDED


def page_with(drawn: str, page: str) -> str:
    before, _, rest = page.partition(BEGINS)
    return before + BEGINS + drawn + ENDS + rest.partition(ENDS)[2]


def contents(folder: Path) -> list[str]:
    """Each file of a folder with what it says of itself, the folder first: above those that it
    imports, so that questions stand above what answers them. The folders in it come last."""
    files = {module_of(each): each for each in sorted(folder.glob("*.py"))}
    arrows = {each: graph()[each] & files.keys() for each in files}
    depth = {each: len(_reached(arrows, each)) for each in files}
    in_order = sorted(files, key=lambda each: (files[each].stem != "__init__", -depth[each], each))
    files_said = [f"{files[each].name:<28} {says(files[each])}" for each in in_order]
    below = sorted(folder.glob("*/__init__.py"))
    return files_said + [f"{each.parent.name + '/':<28} {says(each)}" for each in below]


def says(path: Path) -> str:
    """The first sentence of its docstring; of a rule, its code and that of its class."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    classes.sort(key=lambda each: "Rule" not in map(ast.unparse, each.bases))
    text = ast.get_docstring(tree) or next(filter(None, map(ast.get_docstring, classes)), "")
    code = re.search(r'^    code = "(\w+)"', source, re.M)
    return " ".join([code[1] if code else "", *text.partition("\n\n")[0].split()]).strip()


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        print(*contents(ROOT / folder), sep="\n")
    if sys.argv[1:]:
        raise SystemExit
    PAGE.write_text(page_with(picture(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
