"""The settings of a finding, put into the program it was found in."""

from __future__ import annotations

from pathlib import Path

from tensortrail.analyzer.fixing.suggestions import plan
from tests.rules.recorded import Seen


def mended(seen: Seen) -> str:
    """The program with what `tensortrail settings` would change, all of it."""
    wanted = plan(seen.found, seen.timeline.changed)
    assert not wanted.left, [each.left for each in wanted.left]
    ((path, done),) = wanted.files
    assert Path(path).resolve() == seen.program.resolve()
    return done.after.decode()
