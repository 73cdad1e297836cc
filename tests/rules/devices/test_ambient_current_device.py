"""DEV510, `ambient-current-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("torch.distributed.barrier()", Severity.NOTE),
        ("torch.distributed.barrier(device_ids=[rank])", Severity.NOTE),
        ("torch.distributed.all_reduce(torch.ones(1).cuda())", Severity.WARNING),
    ],
)
def test_a_barrier_takes_the_gpu_of_its_rank(between: str, expected: Severity) -> None:
    source = (
        "import torch\n\ndef start(rank):\n    torch.distributed.init_process_group('nccl')\n"
        f"    {between}\n    torch.cuda.set_device(rank)\n"
    )
    assert severity("DEV510", source) is expected


@pytest.mark.parametrize(("later", "expected"), [("device", None), ("place", Severity.NOTE)])
def test_a_choice_that_the_launcher_takes_back(later: str, expected: Severity | None) -> None:
    source = f"""
import torch
from launcher import get_current_device, is_distributed

def main(net):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if is_distributed():
        {later} = get_current_device()
    return net.to(device), net.copy().to({later})
"""
    assert severity("DEV510", source) is expected


CHOSEN = (
    "import torch\nfrom transformers import AutoModel\n\n\ndef forecast(name, rows):\n"
    "    {first}\n    place = 'cuda' if torch.cuda.is_available() else 'cpu'\n    {then}\n"
    "    return net(rows.to(place))\n"
)
MADE_THERE = "net = AutoModel.from_pretrained(name, device_map={place})"


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (MADE_THERE.format(place="'auto'"), "print(place)", Severity.NOTE),
        ("print(rows)", MADE_THERE.format(place="place"), None),
    ],
)
def test_a_device_of_what_is_made_after_the_choice(
    first: str, then: str, expected: Severity | None
) -> None:
    assert severity("DEV510", CHOSEN.format(first=first, then=then)) is expected


def test_a_default_of_the_device_itself() -> None:
    source = """
    import torch

    def style(x, device="cuda" if torch.cuda.is_available() else "cpu"):
        return x.to(device)
    """
    assert severity("DEV510", source) is None


@pytest.mark.parametrize(
    ("kept", "expected"),
    [("torch.device(f'cuda:{rank}')", None), ("torch.device(rank)", Severity.NOTE)],
)
def test_an_object_that_is_for_gpus_alone(kept: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    class Worker:
        def __init__(self, rank):
            self._device = {kept}

        @property
        def device(self):
            return self._device

        def sums(self, rows):
            rows = torch.tensor(rows).to(self.device)
            return rows, torch.zeros(3).cuda()
    """
    assert severity("DEV510", source) is expected


def test_torch_is_no_accelerator() -> None:
    source = """
    import torch

    def sample(batch, {given}):
        generator = torch.Generator(device=torch.device("cpu"))
        with {given}.autocast("cuda"):
            return batch.cuda(), generator
    """
    assert severity("DEV510", source.format(given="accelerator")) is Severity.NOTE
    assert severity("DEV510", source.format(given="torch").replace(", torch)", ")")) is None


@pytest.mark.parametrize(("name", "expected"), [("output_device", None), ("device", "note")])
def test_the_device_of_the_output_is_not_that_of_the_work(name: str, expected: str | None) -> None:
    source = f"""
    def encode(texts, encoder, {name}=None):
        encoder = encoder.cuda()
        return encoder(texts).to({name})
    """
    found = severity("DEV510", source)
    assert (found and found.value) == expected
