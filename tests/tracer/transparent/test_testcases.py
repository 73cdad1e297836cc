from __future__ import annotations

import unittest
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tensortrail.tracer.recording.begin import begin  # noqa: E402


def test_torchs_own_test_case_finds_no_mode_left_on(tmp_path: Path) -> None:
    from torch.testing._internal import common_utils

    class Own(common_utils.TestCase):  # type: ignore[misc]
        def setUp(self) -> None:  # torch's is not called, as in many tests
            self.made = torch.ones(2)

        def test_it(self) -> None:
            assert self.made.sum() == 2.0

    before = common_utils.TestCase._prev_torch_function_mode_stack_len
    running = begin(tmp_path / "run")
    try:
        result = unittest.TestResult()
        Own("test_it").run(result)
    finally:
        running.stop()
    assert result.testsRun == 1
    assert result.failures == result.errors == []
    assert common_utils.TestCase._prev_torch_function_mode_stack_len == before
