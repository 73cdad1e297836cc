"""Failures whose cause is read from the frames that the exception left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Dataset, TensorDataset  # noqa: E402

import tensortrail  # noqa: E402
from tests.tracer.explaining.test_explanation import explained  # noqa: E402

HERE = Path(__file__).name


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


def rows(count: int) -> Any:
    return TensorDataset(torch.ones(count, 4), torch.zeros(count, dtype=torch.long))


class Broken(Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        if index == 1:
            return None  # of a broken file
        return torch.ones(2)


def test_an_item_that_is_none(tmp_path: Path) -> None:
    told = explained(tmp_path, lambda: list(DataLoader(Broken(), batch_size=2)))
    line = line_of("# of a broken file")
    assert (
        f"`Broken` gave None for an item of the batch: its `return None` at {HERE}:{line}" in told
    )
    assert "collate_fn" in told


def test_weights_that_a_state_dict_lacks(tmp_path: Path) -> None:
    def program() -> None:
        weights = nn.Linear(2, 2).state_dict()  # the checkpoint
        del weights["bias"]
        nn.Linear(2, 2).load_state_dict(weights)

    told = explained(tmp_path, program)
    line = line_of("# the checkpoint")
    assert f"`weights` at {HERE}:{line} has 1 key, and Linear has 2: `bias` is missing" in told


def test_weights_of_other_sizes_in_a_distributed_checkpoint(tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp

    run, saved = tensortrail.trace(tmp_path / "run"), tmp_path / "saved"
    dcp.save({"weight": torch.ones(2, 4)}, checkpoint_id=saved, no_dist=True)
    with pytest.raises((ValueError, dcp.CheckpointException)), run:
        dcp.load({"weight": torch.ones(2, 8)}, checkpoint_id=saved, no_dist=True)
    said = "`weight` is 2x8 in the state dict that is to be filled, and 2x4 in the checkpoint"
    assert said in run.explanation


def test_the_rank_on_which_a_save_failed(tmp_path: Path) -> None:
    from torch.distributed.checkpoint.api import CheckpointException, _wrap_exception

    first, other = map(_wrap_exception, (AttributeError("no fields"), OSError("no space")))
    run = tensortrail.trace(tmp_path / "run")
    with pytest.raises(CheckpointException), run:
        raise CheckpointException("write", {1: first, 3: other})
    assert (
        "Rank 1 failed with AttributeError: no fields (1 more rank failed too)" in run.explanation
    )


def test_a_batch_with_one_sample(tmp_path: Path) -> None:
    def program() -> None:
        loader = DataLoader(rows(5), batch_size=2)
        norm = nn.BatchNorm1d(4)
        for x, _ in loader:
            norm(x)

    told = explained(tmp_path, program)
    assert "The last batch of `loader`" in told
    assert "has a single sample (5 in batches of 2)" in told
    assert "`drop_last=True` for `loader`" in told


def test_a_single_sample_to_predict(tmp_path: Path) -> None:
    told = explained(tmp_path, lambda: nn.BatchNorm1d(4)(torch.ones(1, 4)))
    assert "call `model.eval()` before predicting" in told.replace("Call", "call")


def test_a_loss_for_each_sample(tmp_path: Path) -> None:
    def program() -> None:
        weights = torch.ones(3, requires_grad=True)
        loss = nn.functional.mse_loss(weights, torch.zeros(3), reduction="none")
        loss.backward()

    told = explained(tmp_path, program)
    assert "`loss` has 3 values, but a backward pass starts from one" in told
    assert "`nn.functional.mse_loss` at test_told_by_frames.py" in told
    assert "`loss.mean().backward()`" in told


def test_a_parameter_without_a_gradient(tmp_path: Path) -> None:
    def program() -> None:
        net = nn.ModuleDict({"used": nn.Linear(2, 1), "spare": nn.Linear(2, 1)})
        net["used"](torch.ones(1, 2)).sum().backward()
        for weight in net.parameters():
            weight.grad.norm()

    told = explained(tmp_path, program)
    assert "`net.spare.weight` has no gradient, like 1 other of 4: the loss was computed" in told
    assert "`if weight.grad is not None:`" in told


def test_a_scheduler_at_its_end(tmp_path: Path) -> None:
    def program() -> None:
        loader = DataLoader(rows(5), batch_size=2)
        optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=0.1)
        steps = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2)
        for _ in loader:
            optimizer.step()
            steps.step()

    told = explained(tmp_path, program)
    line = line_of("steps = torch.optim")
    assert f"This OneCycleLR, made at {HERE}:{line}, was made for" in told
    assert (
        "made for 2 steps in all, which are used up, and the loader has 3 batches an epoch" in told
    )


class Flat(nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return x.view(4, -1)


def test_a_number_in_the_place_of_a_size(tmp_path: Path) -> None:
    def program() -> None:
        batch = torch.export.Dim("batch", min=2, max=8)
        torch.export.export(Flat(), (torch.ones(4, 2, 2),), dynamic_shapes=({0: batch},))

    told = explained(tmp_path, program)
    line = line_of("return x.view(4, -1)")
    assert f"`x.view(4, -1)` at {HERE}:{line} has the fixed number 4 in place of `batch`" in told


def test_a_line_that_cannot_be_compiled(tmp_path: Path) -> None:
    def speaks(x: Any) -> Any:
        open("/dev/null").close()  # is opened
        return x + 1

    def program() -> None:
        torch.compile(speaks, fullgraph=True, backend="eager")(torch.ones(2))

    told = explained(tmp_path, program)
    line = line_of("# is opened")
    assert f" at {HERE}:{line} cannot be compiled" in told


def test_a_class_of_another_program(tmp_path: Path) -> None:
    def program() -> None:
        raise AttributeError("Can't get attribute 'Net' on <module '__main__' from 'serve.py'>")

    assert "import the class into the main module first" in explained(tmp_path, program)


class Words(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(10, 2), nn.Embedding(4, 2)

    def forward(self, ids: Any) -> Any:
        return self.words(ids) + self.places(torch.arange(ids.shape[-1]))


@pytest.mark.parametrize(
    ("ids", "cause", "change"),
    [
        ([[3, 12, 11]], "`net.words.weight` has 10 rows, 0 to 9, but row 12 is looked up (2 of 3",
         "where it is made"),
        ([[3, -100]], "but row -100 is looked up (1 of 2 numbers)", "Replace values below 0"),
        ([[1] * 6], "`net.places.weight` has 4 rows, 0 to 3, but row 5 is looked up (2 of 6",
         "These are positions: cut the inputs to 4"),
        ([[1, 1, 1, 1], [8, 9, 10, 11]], "row 11 is looked up (2 of 8 numbers)", "for each id"),
    ],
)  # fmt: skip
def test_a_row_that_a_table_lacks(
    ids: list[list[int]], cause: str, change: str, tmp_path: Path
) -> None:
    def program() -> None:
        net = Words()
        net(torch.tensor(ids))

    told = explained(tmp_path, program)
    assert cause in told
    assert change in told


@pytest.mark.parametrize("asked", ["norm", "grad"])
def test_other_failures_of_the_kind_are_left_alone(asked: str, tmp_path: Path) -> None:
    missing: Any = None
    assert not explained(tmp_path, lambda: getattr(missing, asked))


def test_a_tuple_that_is_taken_for_the_model(tmp_path: Path) -> None:
    def together(model: Any) -> Any:
        return model, "hook"

    def program() -> None:
        net = together(nn.Linear(2, 2))  # the tuple
        net(torch.ones(1, 2))

    told = explained(tmp_path, program)
    line = line_of("# the tuple")
    assert f"`net` is a tuple of Linear, str: `together` at {HERE}:{line} gives more" in told
    assert "Take it apart there: `net, other = ...`" in told


def test_nothing_that_is_taken_for_the_model(tmp_path: Path) -> None:
    def changed(model: Any) -> Any:
        model.requires_grad_(False)

    def program() -> None:
        net = nn.Linear(2, 2)
        net = changed(net)  # in place
        net.eval()

    told = explained(tmp_path, program)
    line = line_of("# in place")
    assert f"`net` is None: `changed` at {HERE}:{line} changes it in place and" in told
    assert "Call it without `net =`" in told


def test_a_file_in_a_folder_that_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    torch.save({}, "weights.pt")

    def program() -> None:
        os.chdir("other")  # leaves it
        torch.load("weights.pt")

    told = explained(tmp_path, program)
    line = line_of("# leaves it")
    assert f"until the program changed it at {HERE}:{line}" in told
    assert "os.path.abspath('weights.pt')" in told


def test_hooks_in_a_whole_graph(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    net, _ = accelerate.cpu_offload_with_hook(nn.Linear(2, 2), torch.device("cpu"))

    def program() -> None:
        run = torch.compile(net, fullgraph=True, backend="eager")  # one graph
        run(torch.ones(1, 2))

    told = explained(tmp_path, program)
    line = line_of("# one graph")
    assert "offloaded by hooks of accelerate, which cannot be compiled" in told
    assert f"no graph break, made at {HERE}:{line}" in told
