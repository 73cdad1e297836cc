"""The tests with DeepSpeed also run where it is not installed: with a release of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests import warm
from tests.real.releases import with_release

TESTS = Path(__file__).with_name("test_real_deepspeed.py")


@pytest.mark.complete
def test_the_rules_about_settings_say_what_deepspeed_does() -> None:
    command = [*warm.PYTEST, str(TESTS)]
    done = warm.run(command, TESTS.parents[3], env=with_release("deepspeed 0.19.8"))
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
