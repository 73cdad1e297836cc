"""The inferred places of a file as text, each beside the line it belongs to."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.judging.module import PythonModule
from tensortrail.analyzer.reading.python_files import numbered
from tensortrail.rules.places import Held, What, Where

_WIDEST = 76
WORDS = (
    (Where.OF, "of(x)", "where the argument x is"),
    (Where.SELF, "self", "where the parameters and buffers of the module are"),
    (Where.STAYS, "stays(x)", "where it was made: `.to()` does not move it"),
    (Where.DEFAULT, "default", "on the default device: it was made without `device`"),
    (Where.KEPT, "kept(x)", "with an object of another file, where its class made it"),
    (Where.HOST, "host", "on the CPU: the library function always returns it there"),
    (Where.LITERAL, "literal(d)", "on the device d, a constant in the code"),
    (Where.DEVICE, "device(d)", "on the device that the value d names"),
    (Where.META, "meta", "on meta, without values"),
    (Where.LOCAL, "local(x)", "where the variable x is; nothing else is known of it"),
    (Where.UNKNOWN, "unknown", "not known on one of the paths to this line"),
)


def shown(path: str, data: bytes, project: Project) -> str:
    """Every line of the file, followed by what is known of the tensors it names."""
    module = PythonModule(path, data, project)
    notes: dict[int, list[str]] = {}
    used: set[Where] = set()
    functions = (*module.nodes(ast.FunctionDef), *module.nodes(ast.AsyncFunctionDef))
    outer = [each for each in functions if module.tree.outermost_function_of(each) is each]
    for function in (module.top, *outer):
        for node, held in module.places(function).seen.items():
            if (note := _note(node, held)) and note not in notes.get(node.lineno, ()):
                notes.setdefault(node.lineno, []).append(note)
                used.update(each.where for each in _inner(held).places)
    lines = numbered(path, data)
    width = min(_WIDEST, max((len(text) for _, text in lines), default=0))
    return "\n".join([*_beside(lines, notes, width), *_legend(used)])


def _legend(used: Collection[Where]) -> Iterator[str]:
    """What the words beside the lines mean."""
    if said := [(word, meaning) for where, word, meaning in WORDS if where in used]:
        yield ""
    for word, meaning in said:
        yield f"      {word:12} {meaning}"


def _beside(lines: list[tuple[str, str]], notes: dict[int, list[str]], width: int) -> Iterator[str]:
    for at, (number, line) in enumerate(lines, 1):
        said = "; ".join(notes.get(at, ()))
        if number or line:
            yield f"{number:>5} {line:<{width}}  # {said}" if said else f"{number:>5} {line}"


def _inner(held: Held) -> Held:
    """Of a container, what it holds."""
    return held.each if held.what is What.BOX and held.each is not None else held


def _note(node: ast.expr, held: Held) -> str:
    """Of names and attributes: "x: of(x)"; of arguments that may be tensors, nothing."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return ""
    text = ast.unparse(node)
    if held.keys and held.parts is not None:
        named = zip(held.keys, held.parts, strict=True)
        return ", ".join(filter(None, (_placed(f"{text}[{key!r}]", each) for key, each in named)))
    return _placed(text, held)


def _placed(text: str, held: Held) -> str:
    inner = _inner(held)
    if inner.what not in (What.TENSOR, What.DEVICE):
        return ""
    place = " or ".join(each.text for each in inner.in_order) or "?"
    where = f"each {place}" if inner is not held else place
    rank = ", no dimension" if inner.rank == 0 else ""
    return f"{text}: {'on ' if held.what is What.DEVICE else ''}{where}{rank}"
