"""`tensortrail server`: the language server, which editors start."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from tensortrail import __version__
from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.cli.console import fail, say
from tensortrail.cli.exit_codes import CLEAN, FAILED
from tensortrail.cli.extras import install, lacking
from tensortrail.config import ConfigError

SETTINGS: dict[str, type] = {
    "select": list,
    "ignore": list,
    "extendSelect": list,
    "exclude": list,
    "config": str,
    "baseline": str,
    "inlayHints": bool,
    "fadeUnrecorded": bool,
}
"""Settings of the client, lists are of texts. Most stand for options of `check`."""


def run(options: Namespace) -> int:
    if package := lacking("editor"):
        fail(f"{package} is not installed here", f"the server needs it: {install('editor')}")
        return FAILED
    from tensortrail.editor.answers import made

    if sys.stdin.isatty():
        say("tensortrail: the language server waits for an editor on standard input")
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # what anybody prints is no message
    made(requested, __version__).start_io(stdout=out)
    return CLEAN


def requested(folder: str, settings: Mapping[str, Any]) -> CheckRequest:
    """What `tensortrail check FOLDER` asks for, with the client's settings as its options."""
    from tensortrail.cli import request
    from tensortrail.cli.parser import parser

    words = [word for name, value in settings.items() for word in _option(name, value)]
    options = parser().parse_args(["check", *words, folder])
    config = request.configuration(options, folder)
    return request.requested(config, options, [folder])


def _option(name: str, value: Any) -> list[str]:
    kind = SETTINGS.get(name)
    if kind in (None, bool) or value in (None, "", []):
        return []
    texts = value if isinstance(value, list) else [value]
    if not isinstance(value, SETTINGS[name]) or not all(isinstance(each, str) for each in texts):
        what = "a list of texts" if kind is list else "a text"
        raise ConfigError(f"the editor's setting tensortrail.{name} must be {what}, not {value!r}")
    dashed = "".join(f"-{each.lower()}" if each.isupper() else each for each in name)
    return [f"--{dashed}={','.join(texts)}"]
