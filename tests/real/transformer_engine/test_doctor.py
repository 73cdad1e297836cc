"""What `tensortrail doctor subclass` says of the quantized tensors of two releases. The kernels
are stand-ins, and there is no GPU: "the current GPU" is only a name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.real.transformer_engine.recorded import NEW, OLD, environment

pytestmark = [
    pytest.mark.real,
    pytest.mark.complete,
    pytest.mark.skipif(
        sys.platform != "linux" or sys.version_info >= (3, 14),
        reason="what TransformerEngine needs is pinned for Linux and Python up to 3.13",
    ),
]
MADE = "tests.real.transformer_engine.makers"


def examined(release: str, maker: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-W", "ignore", "-m", "tensortrail", "doctor", "subclass"]
    done = subprocess.run(
        [*command, f"{MADE}:{maker}()", "--format", "json"],
        env=environment(release),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert f"transformer_engine {release}" in told["versions"]
    return {row["op"]: row for row in told["rows"]}


def test_with_stand_in_kernels_what_the_new_release_mended() -> None:
    old, new = examined(OLD, "mxfp8"), examined(NEW, "mxfp8")
    says = old["new_empty(size, device=cpu)"]
    assert says["told"] == "says it is on cpu, but to torch it is on cuda:0"
    assert says["codes"][0] == "NEW303"
    assert (old["cpu()"]["verdict"], new["cpu()"]["verdict"]) == ("wrong type", "handled")
    mended = {op for op, row in old.items() if row["verdict"] not in ("handled", "not applicable")}
    mended &= {op for op, row in new.items() if row["verdict"] == "handled"}
    assert mended >= {
        "new_empty(size, device=cpu)",
        "StateDictStager.stage",
        "detach()",
        "cpu()",
        "torch.save, torch.load(weights_only=True)",
        "dcp.save, dcp.load",
        "dcp.async_save, dcp.load",
        "chunk(2), which is split",
        "new_zeros(size)",
        "to(meta)",
        "nn.Module.to",
        "save, load(weights_only=True)",
    }


def test_with_stand_in_kernels_what_the_new_release_brought() -> None:
    """2.15.0 gave the storage of the data; 2.16.0 gives an empty one, a new one at every call."""
    old, new = examined(OLD, "blockwise"), examined(NEW, "blockwise")
    for op, code in {
        "untyped_storage() twice": "STO202",
        "untyped_storage().data_ptr() of two": "STO201",
        "untyped_storage().size()": "STO203",
    }.items():
        assert (old[op]["verdict"], new[op]["verdict"]) == ("handled", "wrong storage"), op
        assert new[op]["codes"] == [code]


@pytest.mark.parametrize("maker", ["float8", "mxfp8", "blockwise", "nvfp4"])
def test_with_stand_in_kernels_a_copy_of_the_new_release_shares_memory(maker: str) -> None:
    rows = examined(NEW, maker)
    for op in ("to(cpu, non_blocking, copy=True)", "clone()"):
        assert rows[op]["verdict"] == "wrong storage"
        assert rows[op]["told"].startswith("shares the memory of _")
    assert rows["dcp.async_save, dcp.load"]["verdict"] == "handled"
    assert Path(environment(NEW)["PYTHONPATH"].split(":")[0]).is_dir()
