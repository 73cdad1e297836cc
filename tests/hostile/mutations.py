"""Real files, damaged: by lines, by tokens and by bytes."""

from __future__ import annotations

import importlib.util
import io
import tokenize
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

LIBRARIES = ("tensortrail", "accelerate", "transformers", "peft", "diffusers", "torchao", "torch")
WORDS = (b".device", b".to(", b".cpu()", b"untyped_storage", b"state_dict", b"empty_like", b"copy_")
_SMALLEST, _LARGEST = 2_000, 40_000
_OF_EACH = 40

Mutation = Callable[[bytes, Random], bytes]


def real_files() -> list[bytes]:
    """Files of the installed libraries that have something for the rules, the same each time."""
    found: list[bytes] = []
    for library in LIBRARIES:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            continue
        paths = sorted(Path(spec.origin).parent.rglob("*.py"))
        Random(library).shuffle(paths)
        found += islice(_worth_it(paths), _OF_EACH)
    return found


def _worth_it(paths: Sequence[Path]) -> Iterator[bytes]:
    for path in paths:
        if _SMALLEST < path.stat().st_size < _LARGEST:
            data = path.read_bytes()
            if sum(word in data for word in WORDS) >= 2:
                yield data


def mutants(seed: int) -> Iterator[bytes]:
    """Without end: one file and one to three mutations of it."""
    chance, files = Random(seed), real_files()
    while True:
        data = chance.choice(files)
        for _ in range(chance.randint(1, 3)):
            data = chance.choice(MUTATIONS)(data, chance)
        yield data


def _lines(change: Callable[[list[bytes], int, Random], None]) -> Mutation:
    def mutate(data: bytes, chance: Random) -> bytes:
        lines = data.splitlines(keepends=True)
        if lines:
            change(lines, chance.randrange(len(lines)), chance)
        return b"".join(lines)

    return mutate


def _drop(lines: list[bytes], at: int, chance: Random) -> None:
    del lines[at : at + chance.randint(1, 5)]


def _repeat(lines: list[bytes], at: int, chance: Random) -> None:
    lines[at:at] = lines[at : at + chance.randint(1, 8)] * chance.choice([1, 2, 30])


def _swap(lines: list[bytes], at: int, chance: Random) -> None:
    other = chance.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


def _indent(lines: list[bytes], at: int, chance: Random) -> None:
    by = chance.choice([b"    ", b"\t", b" "])
    for number in range(at, min(at + chance.randint(1, 20), len(lines))):
        lines[number] = by + lines[number]


def _dedent(lines: list[bytes], at: int, chance: Random) -> None:
    for number in range(at, min(at + chance.randint(1, 20), len(lines))):
        lines[number] = lines[number].removeprefix(b"    ")


def _line_end(lines: list[bytes], at: int, chance: Random) -> None:
    end = chance.choice([b"\r\n", b"\r", b"\\\n", b";\n", b"\x0c\n", b""])
    for number in range(at, len(lines), chance.randint(1, 7)):
        lines[number] = lines[number].rstrip(b"\r\n") + end


def _comment(lines: list[bytes], at: int, chance: Random) -> None:
    text = chance.choice([b"# noqa", b"# tensortrail: ignore[OFF101,XX]", b"# coding: idna", b"#"])
    place = chance.choice([0, 1, at])
    lines.insert(place, text + b"\n")


def _around(lines: list[bytes], at: int, chance: Random) -> None:
    opening = chance.choice([b"if x:", b"while y:", b"try:", b"def f(t):", b"with a as b, c:"])
    block = [b"    " + line for line in lines[at:]]
    lines[at:] = [opening + b"\n", *block, b"\n"]


def _tokens(data: bytes, chance: Random) -> bytes:
    try:
        tokens = [each for each in tokenize.tokenize(io.BytesIO(data).readline) if each.string]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return data
    lines = data.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        one, other = chance.choice(tokens[1:]), chance.choice(tokens[1:])
        row, column = one.start
        if one.end[0] != row or not lines[row - 1].isascii():
            continue
        text = chance.choice([b"", other.string.encode(), one.string.encode() * 2, b"self", b"1"])
        line = lines[row - 1]
        lines[row - 1] = line[:column] + text + line[one.end[1] :]
    return b"".join(lines)


def _flip(data: bytes, chance: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 10) if data else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _insert(data: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    odd = [b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1b[31m", "\u202e\u00e9\U0001f525".encode()]
    deep = [b"(" * 300, b"[" * 150 + b"]" * 150, b"-" * 800, b"not " * 500, b".to(x)" * 300]
    return data[:at] + chance.choice([*odd, *deep, chance.randbytes(40)]) + data[at:]


MUTATIONS: tuple[Mutation, ...] = (
    *map(_lines, (_drop, _repeat, _swap, _indent, _dedent, _line_end, _comment, _around)),
    _tokens,
    _tokens,
    _tokens,
    _flip,
    _cut,
    _insert,
)
