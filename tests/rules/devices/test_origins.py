"""How an operand came to lie where it does, as a mismatch of devices tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import SIMULATED, found, record, runs_without_findings, watched

GPU = "cuda"


def test_a_tensor_made_without_a_device_gets_the_name_the_program_has_for_it(
    tmp_path: Path,
) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        where = "cuda" if torch.cuda.is_available() else "cpu"
        mean = torch.zeros(8)
        torch.ones(8, device=where) - mean  # flagged
        """,
        "DEV502",
        GPU,
    )
    assert "`mean` was made on cpu at program.py:3" in seen.only.message
    (setting,) = seen.only.settings
    assert (setting.name, setting.value) == ("device", "where")


LOADED = """\
import torch
from torch.utils.data import DataLoader
net = torch.nn.Linear(4, 2).to("cuda")
rows = {rows}
for {batch} in DataLoader(rows, 2):
    net({given})  # flagged
"""
PAIRS = "[(torch.ones(4), torch.ones(1))] * 4"
DICTS = '[{"x": torch.ones(4)}] * 4'


@pytest.mark.parametrize(("rows", "batch", "given", "moved"), [
    ("torch.ones(8, 4)", "batch", "batch", 'batch = batch.to("cuda:0")'),
    (PAIRS, "x, y", "x", 'x, y = x.to("cuda:0"), y.to("cuda:0")'),
    (PAIRS, "batch", "batch[0]", 'batch = [each.to("cuda:0") for each in batch]'),
    (DICTS, "batch", "batch['x']",
     'batch = {key: each.to("cuda:0") for key, each in batch.items()}'),
])  # fmt: skip
def test_a_batch_is_moved_in_its_loop(
    tmp_path: Path, rows: str, batch: str, given: str, moved: str
) -> None:
    source = LOADED.format(rows=rows, batch=batch, given=given)
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "came out of the DataLoader at program.py:5" in seen.only.message
    mended = seen.fixed
    assert f"    {moved}\n    net(" in mended
    runs_without_findings(tmp_path, mended, "DEV502", GPU)


def test_one_of_a_pair_that_was_not_moved(tmp_path: Path) -> None:
    source = """\
    import torch
    from torch.utils.data import DataLoader
    net = torch.nn.Linear(4, 1).to("cuda")
    for x, y in DataLoader([(torch.ones(4), torch.ones(1))] * 4, 2):
        x = x.to("cuda")
        torch.nn.functional.mse_loss(net(x), y)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert (
        "part 1 of the batch came out of the DataLoader at program.py:4 on cpu, and only other "
        "parts of it were moved: part 0 at program.py:5" in seen.only.message
    )
    mended = seen.fixed
    assert '    x, y = x.to("cuda:0"), y.to("cuda:0")\n    x = x' in mended
    runs_without_findings(tmp_path, mended, "DEV502", GPU)


def test_a_part_of_a_batch_that_a_move_forgets(tmp_path: Path) -> None:
    source = """\
    import torch
    from torch.utils.data import DataLoader
    net = torch.nn.Linear(4, 2).to("cuda")
    rows = [{"x": torch.ones(4), "more": {"mask": torch.ones(2)}, "size": 4}] * 4
    for batch in DataLoader(rows, 2):
        batch = {k: v.to("cuda") if isinstance(v, torch.Tensor) else v for k, v in batch.items()}
        net(batch["x"]) * batch["more"]["mask"]  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert (
        "`more.mask` of the batch came out of the DataLoader at program.py:5 on cpu, and only "
        "other parts of it were moved: `x` at program.py:6" in seen.only.message
    )
    (change,) = seen.only.fixes
    assert not change.edits
    assert change.description == "move `more.mask` too at program.py:6"


def test_what_was_computed_from_a_tensor_on_meta(tmp_path: Path) -> None:
    source = """\
    import torch
    table = torch.nn.Embedding(5, 3, device="meta")
    rows = table(torch.tensor([1, 2]))
    rows.sum().item()  # flagged
    """
    seen = watched(tmp_path, source, "DEV508")
    assert "was computed from `Embedding.weight`" in seen.only.message
    assert "at program.py:3" in seen.only.message


def test_a_tensor_that_is_no_weight_is_to_be_made_elsewhere(tmp_path: Path) -> None:
    source = """\
    import torch
    counts = torch.ones(4, device="meta")
    counts.tolist()  # flagged
    """
    (fix,) = watched(tmp_path, source, "DEV508").only.fixes
    assert fix.description.startswith("`torch.ones` at program.py:2 made it on meta")


def test_the_default_of_a_parameter(tmp_path: Path) -> None:
    source = """\
    import torch
    def scaled(x, scale=torch.arange(4.0) + 1):
        row = scale.view(1, 4)
        return x * row  # flagged
    scaled(torch.ones(2, 4, device="cuda"))
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "comes from the default of a parameter at program.py:2" in seen.only.message


def test_a_value_inside_of_a_function_without_a_trail(tmp_path: Path) -> None:
    source = """\
    import torch
    def forward(x):
        mask = torch.tril(torch.ones(x.shape[0], x.shape[0], dtype=torch.bool))
        return x.masked_fill(~mask, 0.0)  # flagged
    torch.compile(forward, backend="eager")(torch.ones(4, 4, device="cuda"))
    """
    seen = watched(tmp_path, source, "DEV502", SIMULATED)
    assert "`mask` is made on the CPU at program.py:3 by `torch.ones`" in seen.only.message
    assert "dtype=torch.bool, device=x.device)" in seen.fixed


def test_numpy_of_a_tensor_on_a_gpu(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        out = torch.ones(3).cuda()
        out.detach().numpy()  # flagged
        """,
        "DEV503",
        GPU,
    )
    assert "out.detach().cpu().numpy()" in seen.fixed


def test_numpy_of_a_tensor_on_a_gpu_that_autograd_follows(tmp_path: Path) -> None:
    source = """\
    import torch
    out = torch.ones(3, requires_grad=True).cuda()
    out.numpy()  # flagged
    """
    seen = watched(tmp_path, source, "DEV503", GPU)
    assert "out.detach().cpu().numpy()" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, "DEV503", GPU)


def test_of_two_calls_on_one_line_the_function_is_named(tmp_path: Path) -> None:
    source = """\
    import torch
    def both(size):
        return torch.zeros(size), torch.zeros(size)
    keys, values = both(4)
    torch.ones(4, device="cuda") * keys  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "which is given no device" in seen.only.message
    (change,) = seen.only.fixes
    assert change.description == "make it on cuda:0 at program.py:3: give `torch.zeros` a `device`"


def test_a_line_that_cannot_be_told_costs_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("an odd object in a frame")

    monkeypatch.setattr("tensortrail.tracer.noticing.failed_operands.lines_behind", fails)
    source = """\
    import torch
    torch.ones(4, device="cuda") * torch.zeros(4)  # flagged
    """
    assert "was made on cpu" in watched(tmp_path, source, "DEV502", GPU).only.message


def test_what_a_compiled_mask_was_computed_of(tmp_path: Path) -> None:
    source = """\
    import torch
    def attend(x):
        place = torch.arange(x.shape[0])
        bias = (place[None] - place[:, None]).float()
        return x + bias
    torch.compile(attend, backend="eager")(torch.ones(2, 2, device="cuda"))
    """
    _, timeline, error = record(tmp_path, source, SIMULATED)
    (only,) = found(timeline, "DEV502")
    assert error is not None
    assert "`place` is made on the CPU at program.py:3 by `torch.arange`" in only.message


def test_a_gpu_without_a_number_is_the_current_one(tmp_path: Path) -> None:
    source = """\
    import torch
    net = torch.nn.Linear(2, 1).to("cuda:1")
    x = torch.ones(1, 2, device="cuda")
    net(x)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", "cuda:2")
    assert "call `torch.cuda.set_device(1)` before" in seen.only.fixes[0].description


def test_of_two_gpus_the_one_is_told_that_the_run_knows(tmp_path: Path) -> None:
    source = """\
    import torch
    x = torch.ones(2, device="cuda:0") * 2
    table = torch.ones(2).to("cuda:1")
    x + table  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", "cuda:2")
    assert "`table` was moved cpu -> cuda:1 by `Tensor.to` at program.py:3" in seen.only.message


def test_a_move_whose_result_is_dropped(tmp_path: Path) -> None:
    source = """\
    import torch
    net = torch.nn.Linear(4, 2).cuda()
    rows = torch.ones(3, 4)
    rows.cuda()
    net(rows)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert seen.only.message.endswith(
        "`Tensor.cuda` at program.py:4 made a copy on cuda:0, and `rows` itself was not moved"
    )
    assert "\nrows = rows.cuda()\n" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, "DEV502", GPU)


def test_moves_of_what_a_loop_gives(tmp_path: Path) -> None:
    batch = """\
    import torch
    net = torch.nn.Linear(4, 2).cuda()
    batch = {"x": torch.ones(3, 4), "y": torch.ones(3, 2)}
    for value in batch.values():
        value = value.to("cuda")
    net(batch["x"])  # flagged
    """
    told = watched(tmp_path, batch, "DEV502", GPU).only
    assert "`Tensor.to` at program.py:5 made a copy on cuda:0" in told.message


def test_a_tensor_in_an_object_of_a_file(tmp_path: Path) -> None:
    source = """\
    import torch
    from argparse import Namespace
    kept = Namespace(rows=torch.ones(3, 4))
    kept.again = kept
    torch.save({"sample": kept}, "sample.pt")
    net = torch.nn.Linear(4, 2).cuda()
    sample = torch.load("sample.pt", weights_only=False)["sample"]
    net(sample.rows)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "`sample.rows` was read onto cpu from" in seen.only.message
    assert [each.name for each in seen.only.settings] == ["map_location"]


def test_a_batch_that_is_an_object(tmp_path: Path) -> None:
    source = """\
    import torch
    from torch.utils.data import DataLoader
    class Sample:
        def __init__(self, items):
            self.x, self.y = torch.stack(items), torch.ones(len(items), 1)
    net = torch.nn.Linear(4, 1).cuda()
    for batch in DataLoader([torch.ones(4)] * 4, 2, collate_fn=Sample):
        batch.x = batch.x.cuda()
        torch.nn.functional.mse_loss(net(batch.x), batch.y)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "`y` of the batch came out of the DataLoader at program.py:7" in seen.only.message
    assert "`x` at program.py:8" in seen.only.message


def test_what_a_plain_object_makes(tmp_path: Path) -> None:
    source = """\
    import torch
    net = torch.nn.Linear(4, 4).cuda()
    class Stop:
        def __init__(self, ids):
            self.ids = torch.tensor(ids)
        def __call__(self, given):
            return torch.isin(given, self.ids)  # flagged
    Stop([3])(net(torch.ones(2, 4, device="cuda")))
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert [(each.name, each.value) for each in seen.only.settings] == [("device", '"cuda:0"')]
    assert "moved" not in seen.only.message


def test_a_loader_that_accelerate_was_not_given(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    source = """\
    import torch
    from accelerate import Accelerator
    from torch.utils.data import DataLoader
    net = Accelerator().prepare(torch.nn.Linear(4, 1))
    for batch in DataLoader(torch.ones(4, 4), 2):
        net(batch)  # flagged
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "was prepared at program.py:4, and this loader was not" in seen.only.message
    assert "pass the loader to `prepare` too at program.py:4" in str(seen.only.fixes)


@pytest.mark.parametrize("copied", ["copy", "deepcopy"])
def test_a_weight_that_moves_with_a_shallow_copy(copied: str, tmp_path: Path) -> None:
    source = f"""\
    import copy
    import torch
    net = torch.nn.Linear(4, 2)
    twin = copy.{copied}(net)
    twin.to("cuda")
    net(torch.ones(1, 4)){"  # flagged" if copied == "copy" else ""}
    """
    seen = watched(tmp_path, source, "DEV502", GPU)
    if copied == "copy":
        assert ".weight` was moved to cuda:0 at program.py:5; a module and" in seen.only.message
        assert "made by `copy.copy` at program.py:4, share it" in seen.only.message
        assert "`copy.deepcopy` at program.py:4" in str(seen.only.fixes)
