"""What each instruction of a pickle does to the tree that is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensortrail.doctor.checkpoint.formats.pickle_builder import MARK, Builder
from tensortrail.doctor.checkpoint.formats.pickle_values import Made, Name, Reference

_FOR_A_STEP = 16
"""Bytes, as the builder counts them."""


def take(builder: Builder, opcode: str, argument: Any) -> None:
    builder.spend(_FOR_A_STEP)
    if isinstance(argument, (str, bytes, bytearray)):
        builder.spend(len(argument) * (1 if isinstance(argument, bytes) else 2))
    step = STEPS.get(opcode)
    if step is not None:
        step(builder, argument)
    elif opcode in VALUES:
        builder.stack.append(argument)
    elif opcode not in IGNORED:
        raise ValueError(f"opcode {opcode}")


def _pop_pair(builder: Builder) -> list[Any]:
    value, key = builder.pop(), builder.pop()
    return [key, value]


def _tuple(count: int) -> Callable[[Builder, Any], None]:
    def take(builder: Builder, _: Any) -> None:
        if len(builder.stack) < count:
            raise IndexError
        items = tuple(builder.stack[len(builder.stack) - count :])
        if any(each is MARK for each in items):
            raise TypeError
        del builder.stack[len(builder.stack) - count :]
        builder.push(items)

    return take


def _dict(builder: Builder, _: Any) -> None:
    items = builder.marked()
    builder.push({})
    builder.put(items)


def _call(builder: Builder, _: Any) -> None:
    arguments, what = builder.pop(), builder.pop()
    if not isinstance(arguments, (tuple, Made)):
        raise TypeError
    builder.make(what, arguments)


def _new(builder: Builder, _: Any) -> None:
    """An instance: only a class has any, and what a call gave is none."""
    arguments, what = builder.pop(), builder.pop()
    if not isinstance(what, Name):
        raise TypeError
    builder.make(what, arguments)


def _call_with_names(builder: Builder, _: Any) -> None:
    named, arguments, what = builder.pop(), builder.pop(), builder.pop()
    builder.make(what, (arguments, named))


def _instance(builder: Builder, argument: str) -> None:
    items = tuple(builder.marked())
    builder.name(*argument.split(" ", 1))
    builder.make(builder.pop(), items)


def _object(builder: Builder, _: Any) -> None:
    what, *arguments = builder.marked()
    builder.make(what, tuple(arguments))


def _stack_name(builder: Builder, _: Any) -> None:
    name, module = builder.pop(), builder.pop()
    builder.name(module, name)


def _extension(builder: Builder, argument: Any) -> None:
    """A name by its number in a table of the process that loads."""
    builder.name("copyreg", f"extension {argument}")


STEPS: dict[str, Callable[[Builder, Any], Any]] = {
    "MARK": lambda b, _: b.push(MARK),
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
    "POPMARK": lambda b, _: b.marked(),
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
VALUES = frozenset((
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
))  # fmt: skip
IGNORED = frozenset(("PROTO", "FRAME", "STOP"))
