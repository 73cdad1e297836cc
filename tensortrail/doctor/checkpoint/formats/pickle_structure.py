"""What a pickle would build, as a tree of names and plain values.

Nothing is imported, called or built: a class stays its name, a call stays the name of what would
be called with its arguments. The opcodes come from the standard library's disassembler."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from tensortrail.doctor.checkpoint.formats.ranges import TooMuch

MOST_MEMORY = 280_000_000
"""Bytes that the tree may take, by the estimate below."""
_FOR_A_STEP, _FOR_A_CONTAINER, _FOR_A_NAME = 16, 110, 90
_LONGEST_PATH = 1000
_MOST_REMEMBERED = 1 << 32
_WIDEST_NUMBER = 64
"""Bits of a whole number that serves as a key."""


class BadPickle(Exception):
    """The bytes are no pickle; `byte` is where that shows. `short`: they end too early."""

    def __init__(self, message: str, byte: int, short: bool = False) -> None:
        super().__init__(message)
        self.byte, self.short = byte, short


class Name(NamedTuple):
    """A class or function that loading would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Made:
    """What a call would give: the name called, its arguments, the state it gets afterwards."""

    __slots__ = ("arguments", "items", "state", "what")

    def __init__(self, what: Any, arguments: Any) -> None:
        self.what, self.arguments = what, arguments
        self.state: Any = None
        self.items: dict[Any, Any] = {}


class Reference:
    """What the pickle leaves to its reader to find: a storage."""

    __slots__ = ("identity",)

    def __init__(self, identity: Any) -> None:
        self.identity = identity


class Structure(NamedTuple):
    root: Any
    names: tuple[Name, ...]
    """All that loading would import."""


_MARK = object()


def read_pickle(stream: BinaryIO) -> Structure:
    """The first pickle of the stream, which is left behind its last byte."""
    builder = _Builder()
    begin = stream.tell()
    try:
        for opcode, argument, position in pickletools.genops(stream):
            builder.at = (position if position is not None else begin) - begin
            if opcode.name == "FRAME" and not _holds(stream, int(argument or 0)):
                raise BadPickle("the pickle breaks off", builder.at, short=True)
            builder.take(opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise BadPickle("the pickle takes what it has not put there", builder.at) from error
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        text = str(error)
        short = "exhausted" in text or "remain" in text or "not enough data" in text
        short = short or "no newline found" in text
        raise BadPickle(_plain(text, short), builder.at, short) from error
    if len(builder.stack) != 1 or builder.stack[0] is _MARK:
        raise BadPickle("the pickle leaves more or less than one value", builder.at)
    return Structure(builder.stack[0], tuple(builder.names))


def _holds(stream: BinaryIO, count: int) -> bool:
    """So many bytes are left."""
    here = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(here)
    return count <= end - here


def _plain(text: str, short: bool) -> str:
    if short:
        return "the pickle breaks off"
    if "opcode" in text:
        return "the pickle holds a byte that is no instruction"
    return "the pickle holds an instruction with a bad argument"


class _Builder:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.names: dict[Name, None] = {}
        self.spent = 0
        self.at = 0

    def take(self, opcode: str, argument: Any) -> None:
        self._spend(_FOR_A_STEP)
        if isinstance(argument, (str, bytes, bytearray)):
            self._spend(len(argument) * (1 if isinstance(argument, bytes) else 2))
        step = _STEPS.get(opcode)
        if step is not None:
            step(self, argument)
        elif opcode in _VALUES:
            self.stack.append(argument)
        elif opcode not in _IGNORED:
            raise ValueError(f"opcode {opcode}")

    def _spend(self, bytes_: int) -> None:
        self.spent += bytes_
        if self.spent > MOST_MEMORY:
            raise TooMuch(f"a pickle that would take more than {MOST_MEMORY:,} bytes to read")

    def push(self, value: Any) -> None:
        self._spend(_FOR_A_CONTAINER)
        self.stack.append(value)

    def pop(self) -> Any:
        """The value on top; a mark is none."""
        value = self.stack.pop()
        if value is _MARK:
            raise IndexError
        return value

    def top(self) -> Any:
        value = self.pop()
        self.stack.append(value)
        return value

    def marked(self) -> list[Any]:
        """What stands above the last mark, which goes too."""
        at = len(self.stack) - 1
        while self.stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError
        items = self.stack[at + 1 :]
        del self.stack[at:]
        return items

    def name(self, module: Any, name: Any) -> None:
        if not (isinstance(module, str) and isinstance(name, str)):
            raise TypeError
        self._spend(_FOR_A_NAME)
        found = Name(module, name)
        self.names[found] = None
        self.push(found)

    def remember(self, place: int | None = None) -> None:
        if place is not None and not 0 <= place < _MOST_REMEMBERED:
            raise TypeError
        self._spend(_FOR_A_CONTAINER)
        self.memo[len(self.memo) if place is None else place] = self.top()

    def make(self, what: Any, arguments: Any) -> None:
        if not isinstance(what, (Name, Made)):
            raise TypeError
        ordered = isinstance(what, Name) and str(what) == "collections.OrderedDict"
        if ordered and isinstance(arguments, tuple) and len(arguments) > 1:
            raise TypeError
        self.push({} if ordered and arguments == () else Made(what, arguments))

    def put(self, pairs: list[Any]) -> None:
        target = self.top()
        kept = target.items if isinstance(target, Made) else target
        if not isinstance(kept, dict):
            raise TypeError
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            self._spend(_FOR_A_CONTAINER)
            kept[_as_key(key)] = value

    def add(self, items: list[Any]) -> None:
        target = self.top()
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Made):
            raise TypeError

    def build(self) -> None:
        state = self.pop()
        target = self.top()
        if isinstance(target, Made):
            target.state = state
        elif not isinstance(target, dict):
            raise TypeError


def _as_key(key: Any) -> Any:
    """A key that costs the same whatever it holds: keys of files can be chosen to collide."""
    if isinstance(key, (str, bytes)):
        return key
    if isinstance(key, bool) or key is None:
        return str(key)
    if isinstance(key, int) and key.bit_length() <= _WIDEST_NUMBER:
        return str(key)
    return key if isinstance(key, (Made, Reference)) else Reference(key)


def _pop_pair(builder: _Builder) -> list[Any]:
    value, key = builder.pop(), builder.pop()
    return [key, value]


def _tuple(count: int) -> Callable[[_Builder, Any], None]:
    def take(builder: _Builder, _: Any) -> None:
        if len(builder.stack) < count:
            raise IndexError
        items = tuple(builder.stack[len(builder.stack) - count :])
        if any(each is _MARK for each in items):
            raise TypeError
        del builder.stack[len(builder.stack) - count :]
        builder.push(items)

    return take


def _dict(builder: _Builder, _: Any) -> None:
    items = builder.marked()
    builder.push({})
    builder.put(items)


def _call(builder: _Builder, _: Any) -> None:
    arguments, what = builder.pop(), builder.pop()
    if not isinstance(arguments, (tuple, Made)):
        raise TypeError
    builder.make(what, arguments)


def _new(builder: _Builder, _: Any) -> None:
    """An instance: only a class has any, and what a call gave is none."""
    arguments, what = builder.pop(), builder.pop()
    if not isinstance(what, Name):
        raise TypeError
    builder.make(what, arguments)


def _call_with_names(builder: _Builder, _: Any) -> None:
    named, arguments, what = builder.pop(), builder.pop(), builder.pop()
    builder.make(what, (arguments, named))


def _instance(builder: _Builder, argument: str) -> None:
    items = tuple(builder.marked())
    builder.name(*argument.split(" ", 1))
    builder.make(builder.pop(), items)


def _object(builder: _Builder, _: Any) -> None:
    what, *arguments = builder.marked()
    builder.make(what, tuple(arguments))


def _stack_name(builder: _Builder, _: Any) -> None:
    name, module = builder.pop(), builder.pop()
    builder.name(module, name)


def _extension(builder: _Builder, argument: Any) -> None:
    """A name by its number in a table of the process that loads."""
    builder.name("copyreg", f"extension {argument}")


_STEPS: dict[str, Callable[[_Builder, Any], Any]] = {
    "MARK": lambda b, _: b.push(_MARK),
    "EMPTY_DICT": lambda b, _: b.push({}),
    "EMPTY_LIST": lambda b, _: b.push([]),
    "EMPTY_TUPLE": lambda b, _: b.stack.append(()),
    "EMPTY_SET": lambda b, _: b.push([]),
    "DICT": _dict,
    "LIST": lambda b, _: b.push(b.marked()),
    "TUPLE": lambda b, _: b.push(tuple(b.marked())),
    "FROZENSET": lambda b, _: b.push(b.marked()),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "NONE": lambda b, _: b.stack.append(None),
    "NEWTRUE": lambda b, _: b.stack.append(True),
    "NEWFALSE": lambda b, _: b.stack.append(False),
    "POP": lambda b, _: b.pop(),
    "POP_MARK": lambda b, _: b.marked(),
    "DUP": lambda b, _: b.stack.append(b.top()),
    "GLOBAL": lambda b, argument: b.name(*argument.split(" ", 1)),
    "STACK_GLOBAL": _stack_name,
    "EXT1": _extension,
    "EXT2": _extension,
    "EXT4": _extension,
    "REDUCE": _call,
    "NEWOBJ": _new,
    "NEWOBJ_EX": _call_with_names,
    "INST": _instance,
    "OBJ": _object,
    "BUILD": lambda b, _: b.build(),
    "PERSID": lambda b, argument: b.push(Reference(argument)),
    "BINPERSID": lambda b, _: b.push(Reference(b.pop())),
    "APPEND": lambda b, _: b.add([b.pop()]),
    "APPENDS": lambda b, _: b.add(b.marked()),
    "ADDITEMS": lambda b, _: b.add(b.marked()),
    "SETITEM": lambda b, _: b.put(_pop_pair(b)),
    "SETITEMS": lambda b, _: b.put(b.marked()),
    "PUT": lambda b, argument: b.remember(argument),
    "BINPUT": lambda b, argument: b.remember(argument),
    "LONG_BINPUT": lambda b, argument: b.remember(argument),
    "MEMOIZE": lambda b, _: b.remember(),
    "GET": lambda b, argument: b.stack.append(b.memo[argument]),
    "BINGET": lambda b, argument: b.stack.append(b.memo[argument]),
    "LONG_BINGET": lambda b, argument: b.stack.append(b.memo[argument]),
}
_VALUES = frozenset((
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
))  # fmt: skip
_IGNORED = frozenset(("PROTO", "FRAME", "STOP"))


def values_in(root: Any, kind: type = Made) -> Iterator[tuple[str, Any]]:
    """Every value of the kind below the root once, with the keys that lead to it, by dots."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        path, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, kind):
            yield path, value
        found = [(_joined(path, key), each) for key, each in _below(value)]
        waiting += reversed([each for each in found if isinstance(each[1], _WITH_PARTS)])


def _below(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)
    elif isinstance(value, Made):
        yield from value.items.items()
        parts = value.arguments if isinstance(value.arguments, tuple) else (value.arguments,)
        yield from (("", each) for each in (value.state, *parts))
    elif isinstance(value, Reference):
        yield "", value.identity


_WITH_PARTS = (dict, list, tuple, Made, Reference)


def _joined(path: str, key: Any) -> str:
    if len(path) > _LONGEST_PATH or key == "":
        return path
    told = key if isinstance(key, (str, int)) else "?"
    return f"{path}.{told}" if path else str(told)
