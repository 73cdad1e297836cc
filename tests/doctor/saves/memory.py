"""How much host memory a real save of an offloaded model takes at its peak, beside the plan.

    python -m tests.doctor.saves.memory FAMILY SIZE     # planned and measured, in bytes

A process of its own measures one save (Linux): what was read and written before does not count."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

MEASURED = (
    ("nomic_bert", "80MB"),
    ("nomic_bert", "170MB"),
    ("nomic_bert", "1GB"),
    ("mixtral", "170MB"),
)
_LARGE = {
    "nomic_bert": {"hidden_size": 1024, "intermediate_size": 2048, "vocab_size": 8192},
    "mixtral": {"hidden_size": 512, "intermediate_size": 2048, "vocab_size": 8192},
}


def measured(family: str, size: str) -> tuple[int, int]:
    """What was planned and what was measured, in a new process."""
    words = [sys.executable, "-m", "tests.doctor.saves.memory", family, size]
    given_back = dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), "65536")
    env = {**os.environ, **given_back}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
    planned, peak = done.stdout.split()[-2:]
    return int(planned), int(peak)


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def _peak_of(save: Any) -> int:
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
    before = _status("VmRSS")
    save()
    return _status("VmHWM") - before


def main() -> None:
    from tensortrail.doctor import plan_save
    from tests.doctor.saves.families import FAMILIES, offloaded, write_model

    family, size = sys.argv[1:]
    kind, config, sizes = FAMILIES[family]
    FAMILIES[family] = kind, config, {**sizes, **_LARGE[family]}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "model")
        model = offloaded(write_model(family, folder), folder)
        plan = plan_save(model, size)
        model.save_pretrained(Path(place, "warm"), max_shard_size="50MB")
        again = Path(place, "again")
        print(plan.memory, _peak_of(lambda: model.save_pretrained(again, max_shard_size=size)))


if __name__ == "__main__":
    main()
