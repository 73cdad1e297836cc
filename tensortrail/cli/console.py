"""Writing to people: colour only where it is wanted, errors on standard error."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def fail(message: str, *hints: str) -> None:
    say(f"tensortrail: error: {message}")
    for hint in hints:
        say(f"  {hint}")


def say(message: str) -> None:
    """One line; it may begin with a path or quote an error, so it is made inert like findings."""
    from tensortrail.inert import inert_path
    from tensortrail.standard_error import write_beside

    write_beside(f"{inert_path(message)}\n")


def wants_color(choice: str, stream: TextIO | None) -> bool:
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or is_terminal(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """A stream may be closed, by the shell or by a program."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def columns(fallback: int) -> int:
    """How wide the terminal is, if there is one. As `shutil.get_terminal_size` says it, whose
    import brings all that packs files."""
    written = os.environ.get("COLUMNS", "")
    if written.isdecimal() and int(written):
        return int(written)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or fallback  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return fallback


def write_text(text: str, stream: TextIO) -> None:
    """Whatever the terminal's encoding, nothing is lost to an exception."""
    if text and not text.endswith("\n"):
        text += "\n"
    if getattr(stream, "buffer", None) is None:
        stream.write(text)
    else:
        write_bytes(text.encode(stream.encoding or "utf-8", "backslashreplace"), stream)


def write_output(text: str, path: str, option: str) -> None:
    """To the file that was given with the option."""
    from tensortrail.config import ConfigError
    from tensortrail.files import write

    try:
        write(path, (text.rstrip("\n") + "\n").encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror or error}") from error


def write_bytes(data: bytes, stream: TextIO) -> None:
    """As they are: a patch in another encoding would fit no file."""
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode("utf-8", "replace"))
        return
    stream.flush()
    buffer.write(data)
    buffer.flush()


def width() -> int:
    return columns(200)  # the fallback: nobody's terminal wraps
