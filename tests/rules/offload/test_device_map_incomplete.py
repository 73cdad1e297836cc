"""OFF124: a device map that leaves a part of the model out."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("accelerate")

from tests.rules.refused import ended, mended

SOURCE = """\
from accelerate import dispatch_model
from torch import nn
class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm, self.act = Inner(), nn.LayerNorm(4), nn.ReLU()
where = {map}
dispatch_model(Net(), {given})
"""
LACKS = '{"body.first": "cuda:0"}'


@pytest.mark.parametrize("given", ["where", LACKS, f"device_map={LACKS}"])
def test_the_parts_are_added(tmp_path: Path, given: str) -> None:
    source = SOURCE.replace("{map}", LACKS).replace("{given}", given)
    seen = ended(tmp_path, source, "OFF124", rehearse="cuda:2")
    assert "has no entry for `body.last` and `norm` of `Net`" in seen.only.message
    assert '"cuda:0", "body.last": "cuda:0", "norm": "cuda:0"}' in seen.fixed
    mended(tmp_path, seen, "OFF124", rehearse="cuda:2")


def test_a_default_covers_all(tmp_path: Path) -> None:
    source = SOURCE.replace("{map}", '{"": "cuda:0"}').replace("{given}", "where")
    seen = ended(tmp_path, source, "OFF124", rehearse="cuda:2")
    assert seen.error is None
    assert not seen.found
