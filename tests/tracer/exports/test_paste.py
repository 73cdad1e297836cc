"""`tensortrail report --paste`: one block for an issue, with nothing private in it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Confidence, Finding, Severity, Site, Step
from tensortrail.rules.timeline import Did
from tensortrail.tracer.exports.paste import paste
from tests.tracer.exports.trails import Recording

HERE = "/home/janedoe/secret-project"
PRIVATE = ("janedoe", "secret-project", "janes-box", "10.1.2.3", "/home", "/mnt/customers")
MESSAGE = f"mat1 is on cpu in {HERE}/train.py, see /mnt/customers/acme/big/w.pt at 10.1.2.3"


@pytest.fixture
def block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    run = Recording(
        tmp_path, monkeypatch, cwd=HERE, host="janes-box", python="3.11.7", torch="2.13.0",
        rehearse="cuda:2", argv=[f"{HERE}/train.py", "--token", "hf_12345"],
    )  # fmt: skip
    run.writer.learn({"libraries": {"transformers": "5.2.0"}})
    weight = run.storage("cuda:0", 64, "Net.head.weight", shape=(2, 8))
    run.did(Did.CREATE, weight, at=0.5, op="empty", site=(f"{HERE}/net.py", 3, "Net.__init__"))
    operands = [
        {"arg": "0", "device": "cpu", "dtype": "float32", "shape": (4, 8), "storage": 0, "type": "",
         "name": "batch"},
        {"arg": "1", "device": "cuda:0", "dtype": "float32", "shape": (2, 8), "storage": weight,
         "type": ""},
    ]  # fmt: skip
    facts = {"type": "RuntimeError", "message": MESSAGE, "operands": operands}
    run.did(Did.ERROR, weight, at=1.0, op="linear", site=(f"{HERE}/train.py", 9, "main"),
            facts=facts)  # fmt: skip
    site = Site(f"{HERE}/train.py", 9)
    library = Site("/home/janedoe/venv/lib/python3.11/site-packages/torch/nn/linear.py", 12)
    steps = (Step(site, "batch read by janedoe"), Step(library, "given to linear ```"))
    finding = Finding("DEV502", "device-mismatch", f"raises at {HERE}/train.py:9", Severity.ERROR,
                      Confidence.HIGH, site, steps)  # fmt: skip
    return paste(run.read(), [finding])


def test_the_block_has_what_a_maintainer_asks_for(block: str) -> None:
    first, versions, where, *_ = block.splitlines()
    assert first == "```text"
    assert versions.startswith("tensortrail 1, python 3.11.7, torch 2.13.0, transformers 5.2.0")
    assert where.startswith("1 process, cuda:0")
    assert where.endswith("rehearsed on cuda:2")
    assert "linear at train.py:9 in main was given\n" in block
    assert "  0  cpu  float32 4x8  batch\n" in block
    assert "  1  cuda:0  float32 2x8  Net.head.weight\n" in block
    assert "error DEV502 train.py:9  raises at train.py:9\n" in block
    assert "2. given to linear '''  torch/nn/linear.py:12" in block
    assert block.endswith("\n```")


@pytest.mark.parametrize("word", [*PRIVATE, "hf_12345"])
def test_nothing_private_is_in_it(block: str, word: str) -> None:
    assert word not in block


def test_paths_elsewhere_keep_their_end(block: str) -> None:
    assert "see .../big/w.pt at <address>" in block
    assert "batch read by <name>" in block
