"""What a pickle would build, as a tree of names and plain values.

Nothing is imported, called or built: a class stays its name, a call stays the name of what would
be called with its arguments. The opcodes come from the standard library's disassembler."""

from __future__ import annotations

import io
import pickletools
from typing import Any, BinaryIO, NamedTuple

from tensortrail.doctor.checkpoint.formats.pickle_builder import MARK, Builder
from tensortrail.doctor.checkpoint.formats.pickle_opcodes import take
from tensortrail.doctor.checkpoint.formats.pickle_values import Name


class BadPickle(Exception):
    """The bytes are no pickle; `byte` is where that shows. `short`: they end too early."""

    def __init__(self, message: str, byte: int, short: bool = False) -> None:
        super().__init__(message)
        self.byte, self.short = byte, short


class Structure(NamedTuple):
    root: Any
    names: tuple[Name, ...]
    """All that loading would import."""


def read_pickle(stream: BinaryIO) -> Structure:
    """The first pickle of the stream, which is left behind its last byte."""
    builder = Builder()
    begin = stream.tell()
    try:
        for opcode, argument, position in pickletools.genops(stream):
            builder.at = (position if position is not None else begin) - begin
            if opcode.name == "FRAME" and not _holds(stream, int(argument or 0)):
                raise BadPickle("the pickle breaks off", builder.at, short=True)
            take(builder, opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError) as error:
        raise BadPickle("the pickle takes what it has not put there", builder.at) from error
    except (ValueError, OverflowError, MemoryError, RecursionError) as error:
        text = str(error)
        short = "exhausted" in text or "remain" in text or "not enough data" in text
        short = short or "no newline found" in text
        raise BadPickle(_plain(text, short), builder.at, short) from error
    if len(builder.stack) != 1 or builder.stack[0] is MARK:
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
