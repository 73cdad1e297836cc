"""Kinds said by annotations."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.words import Contents, Kind, Value

_KINDS = {
    "torch.Tensor": Kind.TENSOR,
    "torch.FloatTensor": Kind.TENSOR,
    "torch.LongTensor": Kind.TENSOR,
    "torch.BoolTensor": Kind.TENSOR,
    "torch.IntTensor": Kind.TENSOR,
    "torch.HalfTensor": Kind.TENSOR,
    "torch.DoubleTensor": Kind.TENSOR,
    "Tensor": Kind.TENSOR,
    "torch.nn.Parameter": Kind.PARAMETER,
    "torch.nn.parameter.Parameter": Kind.PARAMETER,
    "torch.nn.Module": Kind.MODULE,
    "torch.fx.GraphModule": Kind.MODULE,
    "torch.device": Kind.DEVICE,
    "torch.types.Device": Kind.DEVICE,
    "torch.UntypedStorage": Kind.STORAGE,
    "torch.TypedStorage": Kind.STORAGE,
}
_OTHER = frozenset(
    "int float bool bytes list tuple dict set frozenset complex range type Path pathlib.Path "
    "typing.List typing.Dict typing.Tuple typing.Set typing.Callable collections.abc.Callable "
    "typing.Sequence collections.abc.Sequence torch.dtype torch.Size argparse.Namespace "
    "typing.Iterable typing.Mapping typing.Iterator torch.layout torch.memory_format".split()
)
_SEQUENCES = frozenset(
    "list tuple set frozenset sequence iterable iterator deque collection mutablesequence".split()
)
_MAPPINGS = frozenset("dict mapping mutablemapping ordereddict defaultdict".split())
_UNION = ("typing.Union", "Union")
_TRANSPARENT = (
    "typing.Optional",
    "Optional",
    "typing.Annotated",
    "typing.Final",
    "typing.ClassVar",
)


@unchanging(frozen=True, slots=True)
class Annotated:
    kinds: frozenset[Kind]
    """Empty: says nothing we know."""
    cls: str = ""
    contents: Contents | None = None
    """What the container it names holds."""

    @property
    def value(self) -> Value:
        return Value(self.kinds, cls=self.cls, contents=self.contents)


NOTHING_SAID = Annotated(frozenset())


def read(
    annotation: ast.expr | None,
    qualified: Callable[[ast.AST], str],
    class_kind: Callable[[str], Kind | None],
    name: str = "",
) -> Annotated:
    """`class_kind` tells what an instance of a class of that qualified name is, if known.
    `name` is the annotated variable's: a `str` called device is a device string."""
    if isinstance(annotation, ast.Constant):
        annotation = _quoted(annotation)
    if annotation is None or isinstance(annotation, ast.Constant):
        return NOTHING_SAID
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _union([annotation.left, annotation.right], qualified, class_kind, name)
    if isinstance(annotation, ast.Subscript):
        return _subscripted(annotation, qualified, class_kind, name)
    dotted = qualified(annotation)
    if dotted == "str":  # any text: that it names a device is said by the variable alone
        return Annotated(frozenset({Kind.DEVICE_STRING if "device" in name else Kind.OTHER}))
    if dotted in _KINDS:
        return Annotated(frozenset({_KINDS[dotted]}), dotted)
    if dotted in _OTHER:
        return Annotated(frozenset({Kind.OTHER}), dotted if dotted == "argparse.Namespace" else "")
    kind = class_kind(dotted) if dotted else None
    return Annotated(frozenset({kind} if kind else ()), dotted)


def _quoted(annotation: ast.Constant) -> ast.expr | None:
    """What an annotation in quotes says."""
    if not isinstance(annotation.value, str):
        return None
    try:
        return ast.parse(annotation.value, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _subscripted(
    annotation: ast.Subscript,
    qualified: Callable[[ast.AST], str],
    class_kind: Callable[[str], Kind | None],
    name: str,
) -> Annotated:
    outer, inner = qualified(annotation.value), annotation.slice
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if outer in _UNION:
        return _union(parts, qualified, class_kind, name)
    if outer in _TRANSPARENT:
        return read(parts[0] if parts else inner, qualified, class_kind, name)
    if outer.startswith("jaxtyping.") and isinstance(inner, ast.Tuple) and parts:
        return read(parts[0], qualified, class_kind, name)  # `Float[Tensor, "rows 3"]`
    contents = _contents(outer, inner, qualified, class_kind)
    return Annotated(_container(outer, inner, qualified), contents=contents)


def _container(outer: str, inner: ast.expr, qualified: Callable[[ast.AST], str]) -> frozenset[Kind]:
    if outer.rpartition(".")[2] in ("dict", "Dict", "Mapping", "MutableMapping", "OrderedDict"):
        parts = inner.elts if isinstance(inner, ast.Tuple) else []
        if len(parts) == 2 and _KINDS.get(qualified(parts[1])) in (Kind.TENSOR, Kind.PARAMETER):
            return frozenset({Kind.STATE_DICT})
        return frozenset({Kind.OTHER})
    return frozenset({Kind.OTHER}) if outer in _OTHER else frozenset()


def _contents(
    outer: str,
    inner: ast.expr,
    qualified: Callable[[ast.AST], str],
    class_kind: Callable[[str], Kind | None],
) -> Contents | None:
    """`list[Tensor]`, `dict[str, Tensor]`, `tuple[Tensor, int]`."""
    last = outer.rpartition(".")[2].lower()
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    by_key = last in _MAPPINGS
    if not parts or (by_key if len(parts) != 2 else not (by_key or last == "tuple")):
        return None  # `tuple[()]`, or not as such containers are written
    if not by_key and last not in _SEQUENCES:
        return None
    if by_key:
        parts = parts[1:]
    endless = last == "tuple" and isinstance(parts[-1], ast.Constant) and parts[-1].value is ...
    said = [read(each, qualified, class_kind).value for each in (parts[:1] if endless else parts)]
    in_order = last == "tuple" and not endless
    alike = all((each.kinds, each.cls) == (said[0].kinds, said[0].cls) for each in said)
    each = said[0] if alike else Value()
    return Contents(each, tuple(said) if in_order else (), by_key, declared=True)


def _union(
    parts: list[ast.expr],
    qualified: Callable[[ast.AST], str],
    class_kind: Callable[[str], Kind | None],
    name: str,
) -> Annotated:
    kinds: set[Kind] = set()
    classes: set[str] = set()
    held: list[Contents | None] = []
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            continue
        said = read(part, qualified, class_kind, name)
        if not said.kinds:
            return NOTHING_SAID
        kinds |= said.kinds
        classes.add(said.cls)
        held.append(said.contents)
    contents = held[0] if len(held) == 1 else None
    return Annotated(frozenset(kinds), classes.pop() if len(classes) == 1 else "", contents)
