"""DEV665 kernel-on-current-gpu, beside code that looks like it."""

from __future__ import annotations

import pytest

from tests.rules.judged import HEAD, findings, lines

FUNCTION = """
def nearest(target: torch.Tensor, tool):
    rows = torch.zeros(len(target), device="cuda")
    {call}
    return rows
"""


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("native.fill(target, rows)", True),
        ("native.ops.fill(target.contiguous(), rows, 3)", True),
        ("torch.ops.native.fill(target, rows)", True),
        ("filled = native.fill(target, rows)", False),  # it may only read them
        ("tool.fill(target, rows)", False),  # a method of a value
        ("native.fill(rows)", False),
        ("torch.distributed.all_gather(target, rows)", False),
    ],
)
def test_calls_that_fill_what_they_are_given(call: str, told: bool) -> None:
    source = f"from . import native\n{HEAD}" + FUNCTION.format(call=call)
    assert bool(lines("DEV665", source)) is told


def test_projects_that_choose_a_gpu_for_each_process_are_told_where_files_follow_tensors() -> None:
    choose = "\ndef start(rank):\n    torch.cuda.set_device(rank)\n"
    source = f"from . import native\n{HEAD}" + FUNCTION.format(call="native.fill(target, rows)")
    follow = "\ndef like(x):\n    return torch.zeros(3, device=x.device)\n"
    for more, told in (("", True), (choose, False), (choose + follow, True)):
        assert [each.told for each in findings("DEV665", source + more)] == [told]


def test_who_asks_first_whether_another_gpu_is_current_chooses_none() -> None:
    follow = """
def guarded(x, device):
    if torch.cuda.current_device() != device:
        torch.cuda.set_device(device)
"""
    source = f"from . import native\n{HEAD}" + FUNCTION.format(call="native.fill(target, rows)")
    assert [each.told for each in findings("DEV665", source + follow)] == [True]


def test_a_habit_is_told_once() -> None:
    source = f"from . import native\n{HEAD}" + "".join(
        FUNCTION.replace("nearest", f"nearest{n}").format(call="native.fill(target, rows)")
        for n in range(5)
    )
    found = findings("DEV665", source)
    assert [each.told for each in found] == [True, False, False, False, False]
    assert found[0].message.endswith("; 4 more in this file")
