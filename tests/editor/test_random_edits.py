"""Hundreds of random edits of real files: no crash, and what `check` finds at every stop."""

from __future__ import annotations

import importlib.util
import io
import json
import random
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp

from tensortrail.cli import main
from tests.editor.client import Client, applied

EDITS = 500
MODULES = ("accelerate.hooks", "torch.nn.utils.parametrize")
RISKY = "def f(t):\n    return t.weight.device == 'meta'\n"
COMMENT = "# tensortrail: ignore[DEV501]"
TYPED = ("\n", "(", ")", "    ", "\t", "'", '"""', "𝄞", "ä", "\x0c", RISKY, COMMENT)


def source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        pytest.skip(f"{module} is not installed")
    return Path(spec.origin).read_text(encoding="utf-8")


def memory(process: int) -> int:
    """Kilobytes that are resident."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        pytest.skip("no /proc here")
    (line,) = (each for each in status.read_text().splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1])


def edit(text: str, chance: random.Random) -> lsp.TextDocumentContentChangePartial:
    """Some lines or characters go, something is typed in their place."""
    lines = text.split("\n")
    first = chance.randrange(len(lines))
    last = min(first + chance.choice((0, 0, 0, 1, 5)), len(lines) - 1)
    start = chance.randint(0, len(lines[first]))
    end = chance.randint(start if first == last else 0, len(lines[last]))
    where = lsp.Range(position(lines[first], first, start), position(lines[last], last, end))
    new = chance.choice((*TYPED, "".join(chance.sample(lines, min(3, len(lines))))))
    return lsp.TextDocumentContentChangePartial(where, new)


def position(line: str, number: int, column: int) -> lsp.Position:
    return lsp.Position(number, len(line[:column].encode("utf-16-le")) // 2)


def checked(path: Path, text: str, patch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What `tensortrail check` says of the text, on its standard input."""
    said = io.StringIO()
    patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    patch.setattr("sys.stdout", said)
    command = ["check", "-", "--stdin-filename", str(path), "--output-format", "json"]
    assert main([*command, "--exit-zero"]) == 0
    patch.undo()
    found = json.loads(said.getvalue())
    return sorted((each["code"], each["location"]["line"]) for each in found)


@pytest.mark.complete
@pytest.mark.parametrize("module", MODULES)
def test_the_server_over_random_edits(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(module)
    whole = source(module)
    path = tmp_path / "edited.py"
    uri = path.as_uri()
    client = Client(tmp_path)
    client.open(uri, whole)
    text, early = whole, 0
    for number in range(1, EDITS + 1):
        if number % 100 == 0:
            text = whole  # what is too broken to be judged says little
            client.replace(uri, text)
        change = edit(text, chance)
        text = applied(text, [lsp.TextEdit(change.range, change.text)])
        client.change(uri, change)
        told = [(str(each.code), each.range.start.line + 1) for each in client.diagnostics(uri)]
        assert sorted(told) == checked(path, text, monkeypatch), f"after edit {number}"
        if number == EDITS // 5:
            early = memory(client.process_id)
    assert memory(client.process_id) < 1.25 * early
    assert client.stop() == 0
