"""Writes the options of every command into docs/cli.md: `python -m tensortrail.cli.reference`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from tensortrail.cli import trace
from tensortrail.cli.parser import parser

PAGE = Path("docs") / "cli.md"
MARK = "<!-- generated -->\n"


def page(before: str) -> str:
    """The page with its generated part anew."""
    parts = [before.partition(MARK)[0] + MARK]
    for name, command in _commands(parser(), "tensortrail"):
        parts += _section(name, trace.parser() if name == "tensortrail trace" else command)
    return "\n".join(parts).rstrip() + "\n"


def _commands(
    top: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The commands that do something, those inside of others too."""
    below = [each for each in top._actions if isinstance(each, argparse._SubParsersAction)]
    if not below:
        yield name, top
    for choices in below:
        for word, command in choices.choices.items():
            yield from _commands(command, f"{name} {word}")


def _section(name: str, command: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"```\n{_usage(command)}\n```\n"
    yield "| option | what it does |"
    yield "| --- | --- |"
    for action in command._actions:
        if action.help not in (argparse.SUPPRESS, "show this help message and exit"):
            yield f"| `{_names(action)}` | {_meaning(action)} |"
    yield ""


def _usage(command: argparse.ArgumentParser) -> str:
    if command.usage is not None:
        return command.usage
    places = (each for each in command._actions if not each.option_strings)
    words = [f"[{_names(each)}]" if each.nargs in ("?", "*") else _names(each) for each in places]
    return " ".join([command.prog, "[options]", *words])


def _names(action: argparse.Action) -> str:
    value = action.metavar or (", ".join(map(str, action.choices)) if action.choices else "")
    shown = " ".join(value) if isinstance(value, tuple) else value
    names = ", ".join(action.option_strings)
    return f"{names} {shown}".strip() if names else shown or action.dest


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "").replace("|", "\\|")
    value = action.default
    said = isinstance(value, str) and (f"({value})" in text or "default" in text)
    return text if not isinstance(value, str) or not value or said else f"{text} ({value})".strip()


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
