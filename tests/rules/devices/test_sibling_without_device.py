"""DEV552, `sibling-without-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.FloatTensor(sizes)", Severity.WARNING),
        ("torch.cuda.FloatTensor(sizes)", None),
    ],
)
def test_a_type_of_cuda_is_on_a_gpu(made: str, expected: Severity | None) -> None:
    source = (
        "import torch\nimport torch.distributed as dist\n\n\ndef told(x, sizes, first):\n"
        f"    if first:\n        said = {made}\n        dist.broadcast(said, 0)\n    else:\n"
        "        said = torch.empty(2, device=torch.cuda.current_device())\n"
        "        dist.broadcast(said, 0)\n    return x.view(said)\n"
    )
    assert severity("DEV552", source) is expected


@pytest.mark.parametrize(("name", "expected"), [("later", Severity.WARNING), ("lengths", None)])
def test_a_name_that_is_bound_anew_holds_the_other_one_no_more(
    name: str, expected: Severity | None
) -> None:
    source = (
        "import torch\n\n\ndef best(scores, device, size):\n"
        "    lengths = torch.ones(size, device=device)\n"
        f"    {name} = torch.tensor([lengths[i] for i in scores.argsort()], dtype=lengths.dtype)\n"
        f"    return scores, lengths, {name}\n"
    )
    assert severity("DEV552", source) is expected


@pytest.mark.parametrize(("done", "expected"), [("sum()", Severity.WARNING), ("cuda()", None)])
def test_a_function_that_moves_what_it_takes(done: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\n\nclass Reducing:\n    def summed(self, value):\n"
        f"        value = value.{done}\n        return value\n\n\nclass Training(Reducing):\n"
        "    def totals(self, x, rows):\n        words = self.summed(torch.tensor(len(rows)))\n"
        "        right = self.summed(torch.tensor(rows[0], device=x.device))\n"
        "        return words, right\n"
    )
    assert severity("DEV552", source) is expected


@pytest.mark.parametrize(
    ("anew", "expected"), [("limit / spread", None), ("limit / scale", Severity.WARNING)]
)
def test_a_tensor_that_nothing_reads_meets_nothing(anew: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\n\ndef quantized(x: torch.Tensor, rows, limit, spread):\n"
        "    padded = torch.zeros(rows, rows, device=x.device)\n"
        f"    scale = torch.empty((rows, rows))\n    scale = {anew}\n"
        "    return padded * scale\n"
    )
    assert severity("DEV552", source) is expected
