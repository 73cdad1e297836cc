"""The rules over the real code of both releases: no kernel is asked for anything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from tests.real.releases import release
from tests.real.transformer_engine.recorded import NEW, OLD

pytestmark = [pytest.mark.real, pytest.mark.complete]


def checked(version: str) -> list[tuple[str, str]]:
    """Rule and file of each finding."""
    done = subprocess.run(
        [sys.executable, "-m", "tensortrail", "check", "transformer_engine/pytorch", "--isolated",
         "--no-cache", "--select", "NEW,STO", "--output-format", "json"],
        cwd=release(f"transformer-engine {version}"),
        capture_output=True,
        text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return [(each["code"], each["location"]["file"]) for each in json.loads(done.stdout)]


def test_the_rules_see_what_the_new_release_mended() -> None:
    old, new = checked(OLD), checked(NEW)
    wrappers = [file for code, file in old if code == "NEW303" and "/tensor/" in file]
    assert len(wrappers) == 34
    assert not [file for code, file in new if code == "NEW303" and "/tensor/" in file]
    assert Counter(code for code, _ in new) == {"NEW303": 2, "STO203": 1, "STO202": 1}


def test_the_storage_of_a_call_went_from_one_class_to_all() -> None:
    old, new = (
        [file.rpartition("/")[2] for code, file in checked(version) if code == "STO202"]
        for version in (OLD, NEW)
    )
    assert old == ["float8_blockwise_tensor.py"]
    assert new == ["quantized_tensor.py"]
