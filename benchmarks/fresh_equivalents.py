"""Which fresh mistakes change nothing, as far as the text of the file proves it.

What is left out of the count, and why it changes nothing wherever the file is right:

- *the device of its model*: `zeros_like(x[:, 0], device=x.device)`, also where the name was made
  with the same `device=`;
- *the CPU by default*: a factory is given `torch.device("cpu")`, and the file sets no other;
- *moved at once*: what the call gives is put on a device by the end of the expression, or by the
  next statement that binds the same name;
- *only an index*: a new tensor that is used inside of `[...]` only, which may lie on the CPU;
- *only copied from*: `y.copy_(x.to(d))`, and `y[2:] = x.to(d)` without a tensor as the index;
- *there already*: a move to where the inference of places, which agrees with recorded runs, has
  the tensor before the move, in the right code;
- *a number that stays*: a buffer without a dimension that the file only computes with, asks for
  its value or compares;
- *a buffer that is never read*, in the file or anywhere around it;
- *a number beside its model*: a tensor without a dimension, made of a number, in an operation
  with the tensor whose device it was given;
- *nothing to move*: a loss of torch that was given no weight;
- *never read*: bound to a name that the function does not read, or to `_`.

Everything else counts, also where a reader sees that nothing can happen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.rules.places import UNKNOWN_HELD, Held, Where
from tensortrail.rules.shared.functions import outermost_function

FACTORY, ANOTHER, MOVE = "device= of a factory", "device= of another call", ".to(device)"
BUFFER = "register_buffer"
_VIEWS = frozenset(
    "view reshape detach contiguous expand squeeze unsqueeze transpose permute flatten float half "
    "long int bool double bfloat16 clone repeat requires_grad_ T mT data real imag".split()
)
_MOVES = frozenset({"to", "cuda", "cpu"})
_READS = frozenset({"item", "tolist"})
_NUMBERS = frozenset({"tensor", "as_tensor", "full"})
_LOSSES = re.compile(r"(?:torch\.)?(?:nn\.)?(?:MSE|L1|SmoothL1|Huber|CrossEntropy|NLL|KLDiv|BCE|"
                     r"BCEWithLogits|CosineEmbedding)Loss")  # fmt: skip
_OTHER_DEFAULT = re.compile(r"set_default_(?:device|tensor_type)|with torch\.device\(")
At = tuple[int, int, int, int]
_KNOWN = frozenset({Where.OF, Where.SELF, Where.DEVICE, Where.LITERAL})
_VALUE = frozenset({"item", "device", "dtype", "fill_", "copy_", "add_", "mul_", "sub_", "zero_"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Inferred:
    """Where the tensors of the right code lie, as far as it is inferred."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._module = PythonModule(str(path), data, open_project())

    def call_at(self, at: At) -> ast.Call | None:
        calls = self._module.nodes(ast.Call)
        return next((each for each in calls if place_of(each) == at), None)

    def held(self, node: ast.expr) -> Held:
        function = outermost_function(self._module, node) or self._module.top
        return self._module.places(function).seen.get(node, UNKNOWN_HELD)

    def is_there_already(self, at: At) -> bool:
        call = self.call_at(at)
        if call is None or not isinstance(call.func, ast.Attribute):
            return False
        like = call.func.attr.endswith("_like") and bool(call.args)
        of = call.args[0] if like else call.func.value
        before, after = self.held(of).only, self.held(call).only
        known = before is not None and before.where in _KNOWN and not before.given
        return known and before == after

    def is_a_number(self, at: At, argument: int) -> bool:
        call = self.call_at(at)
        return call is not None and self.held(call.args[argument]).rank == 0


class Text:
    """One file, and what stands above each of its nodes."""

    def __init__(self, data: bytes, path: Path | None = None) -> None:
        self.path, self.data = path, data
        self.places = Inferred(path, data) if path is not None else None
        self.tree = ast.parse(data)
        self.sets_default = bool(_OTHER_DEFAULT.search(data.decode(errors="replace")))
        self.above: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            self.above.update((child, node) for child in ast.iter_child_nodes(node))

    def call_at(self, at: tuple[int, int, int, int]) -> ast.Call | None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and place_of(node) == at:
                return node
        return None

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        while (found := self.above.get(node)) is not None:
            yield found
            node = found

    def function_of(self, node: ast.AST) -> ast.AST:
        inside = (each for each in self.around(node) if isinstance(each, _FUNCTIONS))
        return next(inside, self.tree)

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        return next((each for each in self.around(node) if isinstance(each, ast.stmt)), None)


def place_of(node: ast.expr) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0


def reason(text: Text, kind: str, at: tuple[int, int, int, int]) -> str:
    """Why this mistake changes nothing; "" if that is not proven."""
    call = text.call_at(at)
    if call is None:
        return ""
    if kind == BUFFER:
        return of_buffer(text, call)
    if kind not in (FACTORY, ANOTHER, MOVE):
        return ""
    alone = kind == MOVE or (kind == ANOTHER and _called(call).endswith("_like"))
    if alone and text.places is not None and text.places.is_there_already(at):
        return "there already"
    return next((name for name, holds in _REASONS.items() if holds(text, kind, call)), "")


def _has_the_device_of_its_model(text: Text, kind: str, call: ast.Call) -> bool:
    device, name = _device(call), _called(call)
    if kind == MOVE or not call.args or not name.endswith("_like"):
        return False
    model = _of_what(call.args[0])
    return device == f"{ast.unparse(model)}.device" or _made_with(text, call, model, device)


def _is_on_the_cpu_by_default(text: Text, kind: str, call: ast.Call) -> bool:
    of_numbers = kind == FACTORY or _called(call) in ("as_tensor", "asarray")
    said = re.fullmatch(r"torch\.device\(['\"]cpu['\"]\)", _device(call))
    return of_numbers and bool(said) and not text.sets_default


def _is_moved_at_once(text: Text, kind: str, call: ast.Call) -> bool:
    if kind == ANOTHER:
        return False  # it may be more than a tensor
    last = _last_of_chain(text, call)
    if last is not call and _moves(text, last):
        return True
    statement = text.statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not last:
        return False
    after, name = _next(text, statement), ast.unparse(statement.targets[0])
    if not isinstance(after, ast.Assign) or ast.unparse(after.targets[0]) != name:
        return False
    func = after.value.func if isinstance(after.value, ast.Call) else None
    same = isinstance(func, ast.Attribute) and ast.unparse(func.value) == name
    return same and _called(after.value) == "to" and "device" in ast.unparse(after.value)


def of_buffer(text: Text, call: ast.Call) -> str:
    name = getattr(call.args[0], "value", None)
    if text.path is None or not isinstance(name, str):
        return ""
    reads = [
        each
        for each in ast.walk(text.tree)
        if isinstance(each, ast.Attribute) and each.attr == name and isinstance(each.ctx, ast.Load)
    ]
    if not reads and not _is_read_around(text.path, name):
        return "a buffer that is never read"
    number = text.places is not None and text.places.is_a_number(place_of(call), 1)
    if number and reads and all(_is_read_as_a_number(text, each) for each in reads):
        return "a number that stays"
    return ""


def _is_read_around(path: Path, name: str) -> bool:
    """Some file below the folder two above has `.name` or the name as a text."""
    word = re.compile(rb"\.%s\b|['\"]%s['\"]" % (name.encode(), name.encode()))
    own = sum(1 for _ in word.finditer(path.read_bytes()))
    around = path.parent.parent.rglob("*.py")
    return own > 1 or any(word.search(each.read_bytes()) for each in around if each != path)


def _is_read_as_a_number(text: Text, read: ast.expr) -> bool:
    above = text.above.get(read)
    if isinstance(above, ast.Attribute):
        return above.attr in _VALUE
    if isinstance(above, ast.Call):
        return ast.unparse(above.func) in ("float", "int", "bool", "range", "str")
    arithmetic = (ast.BinOp, ast.Compare, ast.UnaryOp, ast.BoolOp, ast.If, ast.Assert)
    return isinstance(above, (*arithmetic, ast.AugAssign, ast.FormattedValue))


def _is_only_an_index(text: Text, kind: str, call: ast.Call) -> bool:
    if kind != FACTORY:
        return False  # of another place it may be on a GPU, and the indexed tensor on the CPU
    uses = _uses(text, call, bound_often=True)
    return bool(uses) and all(_is_index(text, each) for each in uses)


def _is_only_copied_from(text: Text, kind: str, call: ast.Call) -> bool:
    if kind == ANOTHER:
        return False
    uses = _uses(text, call)
    return bool(uses) and all(_is_copied_from(text, each) for each in uses)


def _is_copied_from(text: Text, last: ast.expr) -> bool:
    above = text.above.get(last)
    if isinstance(above, ast.Call) and last in above.args:
        return _called(above) == "copy_"
    if isinstance(above, ast.Assign) and above.value is last:
        target = above.targets[0]
        return isinstance(target, ast.Subscript) and _is_plain(text, target.slice)
    return False


def _is_a_number_beside_its_model(text: Text, kind: str, call: ast.Call) -> bool:
    made = call
    if kind == MOVE and isinstance(call.func, ast.Attribute):
        if not isinstance(call.func.value, ast.Call):
            return False
        made = call.func.value
    given = made.args[0] if made.args else None
    if _called(made) not in _NUMBERS - {"full"} or not _is_a_number(given):
        return False
    device = _device(call)
    model = device.removesuffix(".device")
    if model == device or not model.replace(".", "").isidentifier():
        return False
    uses = _uses(text, call)
    return bool(uses) and all(_is_beside(text, each, model) for each in uses)


def _has_nothing_to_move(text: Text, kind: str, call: ast.Call) -> bool:
    of = call.func.value if kind == MOVE and isinstance(call.func, ast.Attribute) else None
    return (
        isinstance(of, ast.Call)
        and bool(_LOSSES.fullmatch(ast.unparse(of.func)))
        and not of.args
        and not {"weight", "pos_weight"} & {each.arg for each in of.keywords}
        and all(each.arg for each in of.keywords)
    )


def _is_never_read(text: Text, kind: str, call: ast.Call) -> bool:
    statement = text.statement_of(call)
    last = _last_of_chain(text, call)
    if not isinstance(statement, ast.Assign) or statement.value is not last or kind == ANOTHER:
        return False
    target = statement.targets[0]
    return len(statement.targets) == 1 and isinstance(target, ast.Name) and not _loads(text, call)


_REASONS: dict[str, Callable[[Text, str, ast.Call], bool]] = {
    "the device of its model": _has_the_device_of_its_model,
    "the CPU by default": _is_on_the_cpu_by_default,
    "moved at once": _is_moved_at_once,
    "only an index": _is_only_an_index,
    "only copied from": _is_only_copied_from,
    "a number beside its model": _is_a_number_beside_its_model,
    "nothing to move": _has_nothing_to_move,
    "never read": _is_never_read,
}


def _device(call: ast.Call) -> str:
    """What the call is given as the device, as text."""
    said = [each.value for each in call.keywords if each.arg == "device"]
    said += call.args[:1] if _called(call) == "to" else []
    return ast.unparse(said[0]) if said else ""


def _called(call: ast.AST) -> str:
    func = getattr(call, "func", None)
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _of_what(node: ast.expr) -> ast.expr:
    """`x` of `x[:, 0].view(-1)`: what lies where this does."""
    while True:
        view = node.func if isinstance(node, ast.Call) else node
        if isinstance(view, ast.Attribute) and view.attr in _VIEWS:
            node = view.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node


def _made_with(text: Text, call: ast.Call, model: ast.expr, device: str) -> bool:
    """The name was bound once, to what is given the same device by that very text."""
    if not isinstance(model, ast.Name):
        return False
    function = text.function_of(call)
    bound = [each for each in ast.walk(function) if isinstance(each, ast.Name)
             and each.id == model.id and isinstance(each.ctx, ast.Store)]  # fmt: skip
    statement = text.statement_of(bound[0]) if len(bound) == 1 else None
    if not isinstance(statement, ast.Assign) or statement.targets[0] is not bound[0]:
        return False
    maker = _of_what(statement.value)
    return isinstance(maker, ast.Call) and bool(device) and _device(maker) == device


def _last_of_chain(text: Text, call: ast.expr) -> ast.expr:
    """`x.view(-1).float()` of `x`: the last that is a view or cast of it, and holds its values."""
    last: ast.expr = call
    while True:
        above = text.above.get(last)
        called = text.above.get(above) if above is not None else None
        if isinstance(above, ast.Subscript) and above.value is last:
            if not isinstance(above.ctx, ast.Load):
                return last
            last = above
        elif (
            isinstance(above, ast.Attribute)
            and isinstance(called, ast.Call)
            and called.func is above
            and above.attr in _VIEWS
        ):
            last = called
        else:
            return last


def _moves(text: Text, last: ast.expr) -> bool:
    """`.to(device)`, `.cuda()`, `.item()` follow."""
    above = text.above.get(last)
    called = text.above.get(above) if above is not None else None
    if not isinstance(above, ast.Attribute) or not isinstance(called, ast.Call):
        return False
    if called.func is not above:
        return False
    if above.attr == "to":
        return "device" in ast.unparse(called.args[0] if called.args else called)
    return above.attr in _MOVES | _READS


def _next(text: Text, statement: ast.stmt) -> ast.stmt | None:
    above = text.above.get(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, None)
        if isinstance(block, list) and statement in block:
            at = block.index(statement) + 1
            return block[at] if at < len(block) else None
    return None


def _uses(text: Text, call: ast.Call, bound_often: bool = False) -> list[ast.expr]:
    """The call itself, or every read of the name that it alone is bound to. What is true of every
    read of a name is true of this one, however often the name is bound."""
    last = _last_of_chain(text, call)
    compared = text.above.get(last)
    if bound_often and isinstance(compared, ast.Compare) and _is_a_mask(compared):
        last = compared
    statement = text.statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not last:
        return [last]
    if len(statement.targets) != 1 or not isinstance(statement.targets[0], ast.Name):
        return []
    function, name = text.function_of(call), statement.targets[0].id
    bound = sum(isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
                for each in ast.walk(function))  # fmt: skip
    once = bound == 1 or bound_often
    return [_last_of_chain(text, each) for each in _loads(text, call)] if once else []


def _is_a_mask(node: ast.Compare) -> bool:
    """With a number or a setting: `torch.rand(n) > self.rate`."""
    return all(isinstance(each, (ast.Constant, ast.Attribute)) for each in node.comparators)


def _loads(text: Text, call: ast.Call) -> list[ast.expr]:
    statement = text.statement_of(call)
    assert isinstance(statement, ast.Assign)
    name = ast.unparse(statement.targets[0])
    return [
        each
        for each in ast.walk(text.function_of(call))
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Store)
    ]


def _is_index(text: Text, node: ast.expr) -> bool:
    above = text.above.get(node)
    if isinstance(above, ast.Tuple):
        node, above = above, text.above.get(above)
    return isinstance(above, ast.Subscript) and above.slice is node


def _is_plain(text: Text, index: ast.expr) -> bool:
    """Numbers and ranges, of no mapping: what is written there is copied, from wherever it lies."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    said = [each.value for each in parts if isinstance(each, ast.Constant)]
    of_a_tensor = isinstance(index, ast.Tuple) or any(isinstance(each, ast.Slice) for each in parts)
    plain = all(isinstance(each, (ast.Slice, ast.Constant, ast.UnaryOp)) for each in parts)
    return plain and of_a_tensor and not any(isinstance(each, str) for each in said)


def _is_a_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    return isinstance(node, ast.Call) and ast.unparse(node.func) in ("float", "int", "len")


def _is_beside(text: Text, node: ast.expr, model: str) -> bool:
    """`x * number`, where `x` is the very tensor whose device it has."""
    above = text.above.get(node)
    if not isinstance(above, ast.BinOp):
        return False
    other = above.right if above.left is node else above.left
    return ast.unparse(_of_what(other)) == model
