"""Programs with nothing wrong in them print the same and end the same, and nothing is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests import warm
from tests.tracer.ranks import environment

HERE = Path(__file__).parent / "healthy"
TWO_RANKS = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
LONG = pytest.mark.complete


def _case(name: str, *needs: str, rehearse: str = "", long: bool = True) -> object:
    return pytest.param(name, needs, rehearse, id=name, marks=[LONG] if long else [])


CASES = [
    _case("amp", rehearse="cuda", long=False),
    _case("distributed_checkpoint"),
    _case("inductor"),
    _case("lora", "peft", "transformers"),
    _case("offloaded", "accelerate", "transformers"),
    _case("quantized", "torchao", rehearse="cuda"),
    _case("trainer_resume", "accelerate", "transformers"),
    _case("two_ranks"),
]


@pytest.mark.real
@pytest.mark.parametrize(("name", "needs", "rehearse"), CASES)
def test_a_healthy_program(
    name: str, needs: tuple[str, ...], rehearse: str, tmp_path: Path
) -> None:
    for library in needs:
        pytest.importorskip(library)
    program = str(HERE / f"{name}.py")
    options = ["--directory", "run", *(["--rehearse", rehearse] if rehearse else [])]
    plain = _ran([program], tmp_path, name)
    traced = _ran(["-m", "tensortrail", "trace", *options, program], tmp_path, name)
    assert plain[:2] == traced[:2], traced[2]
    assert traced[0] == 0
    assert "  no findings" in traced[2]


def _ran(command: list[str], folder: Path, name: str) -> tuple[int, str, str]:
    launcher = TWO_RANKS if name == "two_ranks" else []
    env = {**os.environ, **(environment() if launcher else {}), "PYTHONWARNINGS": "ignore"}
    started = ["-m", *launcher, *command] if launcher else command
    done = warm.run(started, folder, env=env)
    return done.returncode, done.stdout, done.stderr
