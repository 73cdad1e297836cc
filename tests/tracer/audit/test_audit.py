"""What became of weights between two moments of a recorded run, and who did it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import tensortrail
from tensortrail.tracer.audit.changes import Became
from tensortrail.tracer.audit.ranks import replicas, together
from tensortrail.tracer.audit.snapshot import NotASnapshot, Snapshot
from tensortrail.tracer.entrances.block import Run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with tensortrail.trace(tmp_path / "run", audit=True) as run:
        yield run


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))


def step(model: nn.Module, *parameters: torch.Tensor) -> None:
    optimizer = torch.optim.AdamW(parameters)
    for _ in range(2):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def line(text: str) -> int:
    """Of this file, where it stands."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n, each in enumerate(source, 1) if text in each and "line(" not in each)


def test_who_changed_a_weight(run: Run) -> None:
    model = net()
    run.snapshot("before", model)
    step(model, model[0].weight)
    run.snapshot("after", model)
    told = run.compare("before", "after")
    (changed,) = told.of(Became.CHANGED)
    assert changed.name.endswith("0.weight")
    at = line("optimizer.step()")
    assert changed.writer == f"`AdamW.step` at test_audit.py:{at}, step 2"
    assert len(told.of(Became.UNCHANGED)) == 3
    assert not told.same


def test_sleep_and_wake(run: Run) -> None:
    model = net()
    kept = {name: each.detach().clone() for name, each in model.named_parameters()}
    run.snapshot("before sleep")
    sleep(model)
    run.snapshot("asleep")
    assert len(run.compare("before sleep", "asleep").of(Became.FREED)) == 4
    wake(model, kept)
    run.snapshot("awake")
    told = run.compare("before sleep", "awake")
    assert told.same
    assert len(told.of(Became.RESTORED)) == 4
    sleep(model)
    run.snapshot("asleep again")
    kept.pop("1.bias")
    wake(model, kept)
    run.snapshot("awake again")
    told = run.compare("awake", "awake again")
    (lost,) = told.of(Became.NEVER_RESTORED)
    assert lost.name.endswith("1.bias")
    assert "1 never restored" in str(told)


def sleep(model: nn.Module) -> None:
    for each in model.parameters():
        each.untyped_storage().resize_(0)


def wake(model: nn.Module, kept: dict[str, torch.Tensor]) -> None:
    for name, each in model.named_parameters():
        each.untyped_storage().resize_(each.numel() * each.element_size())
        if name in kept:
            each.data.copy_(kept[name])
        else:
            each.untyped_storage().fill_(7)


def test_synced_and_overwritten_from_a_file(run: Run, tmp_path: Path) -> None:
    """A trainer syncs its weights into an engine, which loads its file again when it wakes."""
    engine, trainer = net(), net()
    torch.save(engine.state_dict(), tmp_path / "base.pt")
    step(trainer, *trainer.parameters())
    engine.load_state_dict(trainer.state_dict())
    run.snapshot("synced", engine)
    engine.load_state_dict(torch.load(tmp_path / "base.pt"))
    run.snapshot("awake", engine)
    told = run.compare("synced", "awake")
    assert len(told.of(Became.CHANGED)) == 4
    assert all("with values of base.pt" in each.writer for each in told.changes)


def test_values_that_became_nan(run: Run) -> None:
    model = net()
    model.register_buffer("scale", torch.ones(3))
    run.snapshot("before")
    model.scale.div_(0).mul_(0)
    run.snapshot("after")
    (change,) = run.compare("before", "after").of(Became.CHANGED)
    assert change.said == ("3 values are NaN or infinite",)
    assert "`Tensor.mul_` at test_audit.py" in change.writer


def test_a_tie_that_was_undone() -> None:
    model = net()
    model[1].weight = model[0].weight
    before = tensortrail.fingerprint(model)
    model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True)
    told = before.compare(tensortrail.fingerprint(model))
    assert not told.same
    assert "1.weight: shares its memory with 0.weight no longer" in str(told)


def test_plain_attributes_and_types() -> None:
    model = net()
    model.table = torch.arange(5)
    before = tensortrail.fingerprint(model)
    assert "table" in before.marks
    model[0].half()
    model.table = torch.arange(6)
    del model[1].bias
    told = before.compare(tensortrail.fingerprint(model))
    assert {e.name for e in told.of(Became.RETYPED)} == {"0.weight", "0.bias", "table"}
    assert [each.name for each in told.of(Became.GONE)] == ["1.bias"]
    assert "float32 [8, 8] -> float16 [8, 8]" in str(told)


def test_a_file_that_is_compared_elsewhere(tmp_path: Path) -> None:
    model = net()
    before = tensortrail.fingerprint(model, "before")
    before.save(tmp_path / "before.json")
    assert (tmp_path / "before.json").stat().st_size < 1000
    read = Snapshot.read(tmp_path / "before.json")
    assert read == before
    assert read.compare(tensortrail.fingerprint(model)).same
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(NotASnapshot, match="no snapshot"):
        Snapshot.read(tmp_path / "other.json")


def test_trainer_and_engine_with_other_names() -> None:
    names = ("q", "k", "v")
    trainer = nn.ModuleDict({name: nn.Linear(8, 8) for name in names})
    trainer["out"] = nn.Linear(8, 4)
    engine = nn.ModuleDict({"qkv": nn.Linear(8, 24), "o_proj": nn.Linear(8, 4)})
    for name in ("weight", "bias"):
        parts = [getattr(trainer[each], name).data for each in names]
        getattr(engine["qkv"], name).data = torch.cat(parts)
    engine["o_proj"].load_state_dict(trainer["out"].state_dict())
    told = tensortrail.fingerprint(trainer).compare(tensortrail.fingerprint(engine))
    assert told.same, str(told)
    assert told.matched["out.weight"] == "o_proj.weight"
    assert told.matched["k.bias"] == "qkv.bias"
    told = tensortrail.fingerprint(engine).compare(tensortrail.fingerprint(trainer))
    assert told.same, str(told)
    with torch.no_grad():
        engine["qkv"].weight[9, 3] += 1
    told = tensortrail.fingerprint(trainer).compare(tensortrail.fingerprint(engine))
    assert not told.same
    assert "qkv.weight" in {each.name for each in told.of(Became.NEW)}


def test_ranks_that_should_be_alike() -> None:
    ranks = [tensortrail.fingerprint(net()) for _ in range(3)]
    assert replicas(ranks) == []
    odd = net()
    odd[0].bias.data[2] += 1
    assert replicas([*ranks, tensortrail.fingerprint(odd)]) == [("0.bias", [3])]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_shards_of_any_number_of_ranks(ranks: int) -> None:
    """The parts lie in one process here; `loose` of the whole does not depend on the split."""
    from dataclasses import replace

    whole = tensortrail.fingerprint(net())
    parts = []
    for rank in range(ranks):
        model = net()
        for each in model.parameters():
            each.data = each.data.chunk(ranks)[rank]
        snapshot = tensortrail.fingerprint(model)
        parts.append(Snapshot(marks={
            name: replace(mark, shard=f"a part of {list(whole.marks[name].shape)}")
            for name, mark in snapshot.marks.items()
        }))  # fmt: skip
    one = Snapshot(marks={
        name: replace(mark, shard=f"a part of {list(mark.shape)}")
        for name, mark in whole.marks.items()
    })  # fmt: skip
    assert together(parts).compare(together([one])).same


def test_nothing_is_read_without_the_option(tmp_path: Path) -> None:
    with tensortrail.trace(tmp_path / "run") as run:
        step(net(), nn.Parameter(torch.ones(1)))
    assert not list((tmp_path / "run").glob("*.json"))
    with pytest.raises(RuntimeError, match="not running"):
        run.snapshot("late")
    with pytest.raises(KeyError, match="there are: none"):
        run.compare("a", "b")


def test_the_same_results_with_an_audit(tmp_path: Path) -> None:
    plain, audited = net(), net()
    step(plain, *plain.parameters())
    with tensortrail.trace(tmp_path / "run", audit=True) as run:
        step(audited, *audited.parameters())
        run.snapshot("now")
    assert tensortrail.fingerprint(plain).compare(tensortrail.fingerprint(audited)).same
