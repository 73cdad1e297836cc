"""What `torch.save` writes: tensors of the CPU, those of a model wherever it lies, or none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.values.copied import copies_to_the_cpu
from tensortrail.analyzer.values.file_names import end_of_path
from tensortrail.analyzer.values.saved_keys import keys_of
from tensortrail.patterns import pattern
from tensortrail.rules.places import What, Where
from tensortrail.rules.project_facts import Content, SavedFile
from tensortrail.rules.shared.moves import MOVES, moves_to_cpu
from tensortrail.rules.shared.objects import all_given
from tensortrail.rules.words import Kind

_RENAMES = ("os.rename", "os.replace", "shutil.move", "shutil.copy", "shutil.copyfile")
_DEEPEST = 8
_HOLDS_NONE = frozenset("numpy tolist item".split())
"""Methods whose result is no tensor."""
_SAME = frozenset(
    "detach clone contiguous float half bfloat16 double copy items values squeeze unsqueeze".split()
)
"""Methods whose result lies where that lies of which they are asked."""
_OF_NUMBERS = frozenset("len int float str bool sum vars asdict time range getattr type".split())
_BOXES = frozenset("dict list tuple set OrderedDict defaultdict sorted zip enumerate".split())
_ADDS = frozenset("append extend update add insert".split())
_KEEPS_NUMBERS = pattern(r"sched|sampler|dataloader|scaler|\bamp\b")
_ON_CPU = frozenset({Where.HOST, Where.DEFAULT})
_NO_TENSORS = frozenset({What.NUMBER, What.NONE, What.DEVICE})
_OF_DEVICES = pattern(
    rb"cuda|gpu|npu|xpu|device|\.to\(|distributed|accelerat|lightning|Trainer", re.IGNORECASE
)
"""What a file says that computes elsewhere than on the CPU, or has it done."""


def saves_of(file: ProjectFile) -> list[SavedFile]:
    """The files that this one writes."""
    found = []
    for call in file.calls("torch.save"):
        what, where = _argument(call, 0, "obj"), _argument(call, 1, "f")
        if what is not None and where is not None:
            cls = file.tree.class_of(call)
            found += [
                SavedFile(
                    file.path,
                    call.lineno,
                    end_of_path(file, each),
                    cls.name if cls is not None else "",
                    ast.unparse(each),
                    _of_a_file(file, what),
                    keys_of(file, what),
                )
                for each in (where, *_copies(file, call, where))
            ]
    return found


def _copies(file: ProjectFile, call: ast.Call, where: ast.expr) -> Iterator[ast.expr]:
    """`shutil.copy(path, best)`, in the class or function that writes the file: its other names."""
    shown, around = ast.unparse(where), file.tree.class_of(call) or file.tree.function_of(call)
    for each in file.calls(*_RENAMES, inside=around):
        if len(each.args) > 1 and ast.unparse(each.args[0]) == shown:
            yield each.args[1]


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    named = (each.value for each in call.keywords if each.arg == name)
    return call.args[position] if len(call.args) > position else next(named, None)


def _of_a_file(file: ProjectFile, what: ast.expr) -> Content:
    found = _content(file, what, _DEEPEST)
    if found is Content.UNKNOWN and (_is_made_here(file, what) or _brings_a_model(file, what)):
        return Content.CPU
    return found


def _brings_a_model(file: ProjectFile, what: ast.expr) -> bool:
    """`{"net": model.state_dict(), key: value}` after `model.cpu()`: whoever brings a model to the
    CPU for a file leaves nothing else of it on a GPU."""
    made = (what, *file.value_of(what).origins)
    calls = (each for one in made for each in ast.walk(one) if isinstance(each, ast.Call))
    return any(
        isinstance(each.func, ast.Attribute)
        and each.func.attr == "state_dict"
        and _of_state(file, each.func.value) is Content.CPU
        for each in calls
    )


def _is_made_here(file: ProjectFile, what: ast.expr) -> bool:
    """By a file that knows of no other device than the CPU, of nothing that it was given."""
    function = file.tree.function_of(what)
    arguments = file.tree.nodes(ast.arg, function) if function is not None else ()
    given = {each.arg for each in arguments}
    return given.isdisjoint(_names_behind(file, what)) and not _OF_DEVICES.search(file.source.data)


def _names_behind(file: ProjectFile, what: ast.expr) -> set[str]:
    """Those it is made of, and those of which what they are bound to is made."""
    todo, found = [what], set[str]()
    while todo:
        for name in ast.walk(todo.pop()):
            if isinstance(name, ast.Name) and name.id not in found:
                found.add(name.id)
                todo += [*file.value_of(name).origins, *_put_into(file, name)]
    return found


def _joined(parts: Iterable[Content]) -> Content:
    found = set(parts)
    for each in (Content.COMPUTED, Content.UNKNOWN, Content.CPU):
        if each in found:
            return each
    return Content.NO_TENSOR


def _content(file: ProjectFile, node: ast.expr, depth: int) -> Content:
    if not depth:
        return Content.UNKNOWN
    depth -= 1
    match node:
        case ast.Constant() | ast.JoinedStr() | ast.Compare():
            return Content.NO_TENSOR
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            return _joined(_content(file, each, depth) for each in parts)
        case ast.DictComp(value=part) | ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
            return _content(file, part, depth)
        case ast.IfExp(body=first, orelse=second):
            return _joined(_content(file, each, depth) for each in (first, second))
        case ast.Call():
            found = _of_call(file, node, depth)
            return found if found is not None else _by_place(file, node)
        case ast.Name():
            return _of_name(file, node, depth)
        case ast.Attribute() if _is_counted_up(file, node):
            return Content.NO_TENSOR
    return _by_place(file, node)


def _of_call(file: ProjectFile, call: ast.Call, depth: int) -> Content | None:
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    name = file.qualified(call.func)
    last = name.rpartition(".")[2]
    if name.startswith("numpy.") or method in _HOLDS_NONE or name in _OF_NUMBERS:
        return Content.NO_TENSOR
    if moves_to_cpu(file, call) or copies_to_the_cpu(file, call):
        return Content.CPU
    if method == "state_dict" and owner is not None:
        return _of_state(file, owner)
    if method in _SAME and owner is not None:
        return _content(file, owner, depth)
    if last in _BOXES:
        return _joined(_content(file, each, depth) for each in all_given(call))
    return None


def _is_counted_up(file: ProjectFile, node: ast.Attribute) -> bool:
    """`self.steps`, where the class says `self.steps += 1`."""
    shown = ast.unparse(node)
    return any(
        isinstance(each.value, ast.Constant) and ast.unparse(each.target) == shown
        for each in file.tree.nodes(ast.AugAssign, file.tree.class_of(node))
    )


def _of_state(file: ProjectFile, owner: ast.expr) -> Content:
    """Of a model or an optimizer: it lies where they do, unless they were just moved."""
    shown = ast.unparse(owner)
    if _KEEPS_NUMBERS.search(shown.rpartition("(")[2].lower()):
        return Content.NO_TENSOR
    inner = [each for each in ast.walk(owner) if isinstance(each, ast.Call)]
    moved = any(moves_to_cpu(file, each) for each in inner) or _was_moved(file, owner, shown)
    return Content.CPU if moved else Content.COMPUTED


def _was_moved(file: ProjectFile, owner: ast.expr, shown: str) -> bool:
    """`model.cpu()` above it in the function, and no move to elsewhere in between."""
    function = file.tree.function_of(owner)
    moves = [
        call
        for call in file.calls(*MOVES, inside=function)
        if isinstance(call.func, ast.Attribute)
        and ast.unparse(call.func.value) == shown
        and call.lineno < owner.lineno
    ]
    return bool(moves) and moves_to_cpu(file, max(moves, key=lambda each: each.lineno))


def _of_name(file: ProjectFile, name: ast.Name, depth: int) -> Content:
    value = file.value_of(name)
    if value.kind in (Kind.SETTINGS, Kind.DEVICE, Kind.DEVICE_STRING):
        return Content.NO_TENSOR
    made = [each for each in value.origins if each is not name]
    if not made:
        return _by_place(file, name)
    parts = [*made, *_put_into(file, name)]
    return _joined(_content(file, each, depth) for each in parts)


def _put_into(file: ProjectFile, name: ast.Name) -> Iterator[ast.expr]:
    """`kept[key] = part`, `kept.append(part)`."""
    function = file.tree.function_of(name)
    for assign in file.tree.nodes(ast.Assign, function):
        for target in assign.targets:
            if isinstance(target, ast.Subscript) and _is(target.value, name):
                yield assign.value
    for call in file.calls(*_ADDS, inside=function):
        if isinstance(call.func, ast.Attribute) and _is(call.func.value, name):
            yield from all_given(call)[-1:]


def _is(node: ast.expr, name: ast.Name) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id == name.id


def _by_place(file: ProjectFile, node: ast.expr) -> Content:
    function = file.tree.outermost_function_of(node) or file.tree.top
    held = file.places_of_file.places(function).seen.get(node)
    if file.kind_of(node) is Kind.MODULE:
        return Content.COMPUTED
    if held is None:
        return Content.UNKNOWN
    if held.what in _NO_TENSORS:
        return Content.NO_TENSOR
    if held.what is What.TENSOR and held.places:
        if all(each.where in _ON_CPU or each.text == "literal(cpu)" for each in held.places):
            return Content.CPU
        if any(each.where in (Where.SELF, Where.DEVICE, Where.LITERAL) for each in held.places):
            return Content.COMPUTED
    return Content.UNKNOWN
