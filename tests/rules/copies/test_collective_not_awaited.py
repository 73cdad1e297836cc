"""XFR617, `collective-not-awaited`: who has the handle, and what waits in another way."""

from __future__ import annotations

import pytest

from tests.rules.judged import lines

HEAD = """
import torch
import torch.distributed as dist

def step(x, works, flag):
"""
BEGUN = "dist.all_reduce(x, async_op=True)"


def flagged(*body: str) -> list[int]:
    """Lines of the body, from 1."""
    text = HEAD + "".join(f"    {each}\n" for each in body)
    return [line - 5 for line, _ in lines("XFR617", text)]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ((BEGUN, "return x / 2"), [2]),
        ((f"work = {BEGUN}", "y = x + 1", "work.wait()", "return y"), [2]),
        ((f"work = {BEGUN}", "work.wait()", "return x + 1"), []),
        ((f"work = {BEGUN}", "return x, work"), []),
        ((f"return {BEGUN}",), []),
        ((f"works.append({BEGUN})", "return x + 1"), []),
        ((f"mine = [{BEGUN}]", "return x + 1"), []),
        ((BEGUN, "torch.cuda.synchronize()", "return x + 1"), []),
        ((BEGUN, "dist.barrier()", "return x + 1"), []),
        ((BEGUN, "print(x.shape)", "x = flag + 1", "return x"), [1]),
        ((BEGUN, "y = x", "dist.barrier()"), []),
        ((f"if flag: work = {BEGUN}", "if not flag: x.add_(1)", "if flag: work.wait()"), []),
        ((BEGUN, "flag.keep(x)", "dist.barrier()"), []),
        (
            (
                "y = works.matmul(x)",
                "z = dist.all_reduce(y, async_op=True)",
                "works += 1",
                "z.wait()",
            ),
            [],
        ),
        ((BEGUN, "done = flag.record_event()", "return x + 1, done"), []),
    ],
)
def test_who_waits(body: tuple[str, ...], expected: list[int]) -> None:
    assert flagged(*body) == expected


@pytest.mark.parametrize(("waited", "expected"), [("sent", [9]), ("got", [])])
def test_another_handle_is_waited_for(waited: str, expected: list[int]) -> None:
    source = f"""
    import torch.distributed as dist

    def exchanged(mine, theirs, peer):
        sent = dist.isend(mine, peer)
        got = dist.irecv(theirs, peer)

        {waited}.wait()
        return theirs + mine
    """
    assert [line for line, _ in lines("XFR617", source)] == expected


@pytest.mark.parametrize(("use", "expected"), [("begin(x)", [9]), ("begin(x).wait()", [])])
def test_a_function_of_the_file_gives_the_handle(use: str, expected: list[int]) -> None:
    source = f"""
    import torch.distributed as dist

    def begin(value):
        return dist.all_reduce(value, async_op=True)

    def mean(x):
        {use}
        return x / dist.get_world_size()
    """
    assert [line for line, _ in lines("XFR617", source)] == expected


@pytest.mark.parametrize("end", ["for work in works: work.wait()", "pass"])
def test_handles_in_a_list(end: str) -> None:
    source = f"""
    import torch.distributed as dist

    def average(parameters):
        works = []
        for each in parameters:
            works.append(dist.all_reduce(each.grad, async_op=True))
        {end}
        for each in parameters:
            each.grad.div_(2)
    """
    assert [line for line, _ in lines("XFR617", source)] == ([] if "wait" in end else [9])
