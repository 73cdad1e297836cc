"""Most lines of a .gitignore file are read without pathspec, and mean what they mean to it."""

from __future__ import annotations

import random

import pytest
from pathspec import GitIgnoreSpec

from tensortrail.analyzer.reading.plain_ignores import PlainIgnores, is_plain, is_tame

_PLAIN = (
    "__pycache__/ *.py[cod] *$py.class .Python build/ /dist /site/ *.egg-info/ docs/_build/ a?c "
    "pip-log.txt .coverage.* lib64 test_*/out src/*.so wandb runs/ (old) x+y v1.0^2"
).split()
_OTHER = (
    "*/*.pyc */**/old *.*~ a/**/b* *notes* build/**/src/*.so !keep.py "
    "!build/keep **/*.pt **/notes .idea/* docs/old/* !docs/*.md "
    "* */ /* a**b *a*b \\!x "
    "[!a]b a[ **"
).split()
_NAMES = (
    "build dist site foo.egg-info docs _build abc a.pyc b.py keep.py notes x.pt .idea old "
    "lib64 test_1 out src s.so wandb runs (old) x+y v1.0^2 README.md __pycache__ .coverage.1"
).split()


@pytest.mark.parametrize("line", _PLAIN)
def test_is_plain(line: str) -> None:
    assert is_plain(line)
    assert is_plain(f"{line}  ")


@pytest.mark.parametrize("line", [*_OTHER, "a b", "", "/", "!", "a//b", "\\#a"])
def test_is_left_to_the_library(line: str) -> None:
    assert not is_plain(line)


@pytest.mark.parametrize("line", ["a[", "a\\", "a***b", "**/a/**/b/**", "***", "!", "/", "[z-a]"])
def test_may_be_refused(line: str) -> None:
    assert not is_tame(line)


def test_says_the_same_as_pathspec() -> None:
    dice = random.Random(7)
    lines = [each for each in (*_PLAIN, *_OTHER) if is_plain(each) or is_tame(each)]
    decided = left = 0
    for _ in range(400):
        some = dice.sample(lines, dice.randint(1, 12))
        spec, plain = GitIgnoreSpec.from_lines(some), PlainIgnores(some)
        for _ in range(10):
            path = "/".join(dice.choices(_NAMES, k=dice.randint(1, 3))) + "/" * dice.randint(0, 1)
            found = spec.check_file(path)
            if plain.others_may_fit(path):
                left += 1
                continue
            assert plain.last(path) == found.index, (some, path)
            decided += found.index is not None
    assert decided > 300
    assert left > 100
