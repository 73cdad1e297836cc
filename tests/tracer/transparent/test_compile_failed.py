"""A compiler that gives up forgets what it was told; the recording does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.exc import Unsupported  # noqa: E402

from tensortrail.tracer.patching.mode_stack import ours  # noqa: E402
from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tensortrail.tracer.watching.mode import TrailMode  # noqa: E402


def breaks(x: Any) -> Any:
    torch._dynamo.graph_break()
    return x + 1


def test_the_mode_is_on_again(tmp_path: Path) -> None:
    torch._dynamo.reset()
    running = begin(tmp_path)
    try:
        whole = torch.compile(breaks, backend="eager", fullgraph=True)
        for _ in range(2):
            with pytest.raises(Unsupported):
                whole(torch.ones(2))
            assert ours(TrailMode) is not None
        nested = torch.compile(lambda x: whole(x) + 1, backend="eager")
        with pytest.raises(Unsupported):
            nested(torch.ones(2))
        assert ours(TrailMode) is not None
    finally:
        running.stop()
        torch._dynamo.reset()
    assert not running.trouble
    assert ours(TrailMode) is None
    assert torch._C._len_torch_function_stack() == 0
