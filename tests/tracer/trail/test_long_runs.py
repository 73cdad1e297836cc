"""Long runs: bytes on disk and in memory, whatever the length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.rules.timeline import Did

from ..programs import recorded

RESIDENT = """
        import resource

        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
"""


@pytest.mark.complete
def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        RESIDENT
        + """
        def work(steps):
            x = torch.ones(4)
            for step in range(steps):
                x.to("meta"), torch.zeros(4)

        def main():
            work(5_000)
            before = resident()
            work(35_000)
            print((resident() - before) // 1_000_000)
        """,
    )
    assert len(run.timeline.parts[0].rows) >= 4 * 40_000
    assert int(run.output) < 10


def test_live_storages_take_little(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        RESIDENT
        + """
        def main():
            count = 50_000
            with torch._C.DisableTorchFunction():
                alive = [torch.zeros(4) for _ in range(count)]
            before = resident()
            for tensor in alive:
                tensor.untyped_storage()
            print((resident() - before) // count)
        """,
    )
    assert int(run.output) < 700


@pytest.mark.complete  # a program of its own
def test_an_event_takes_few_bytes(tmp_path: Path) -> None:
    """A training with checkpoints, as people do it."""
    run = recorded(
        tmp_path,
        """
        def main():
            torch.set_num_threads(1)
            layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
            model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
            model.to(torch.bfloat16).to(torch.float32)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            for step in range(20):
                optimizer.zero_grad()
                batch = torch.randn(2, 8, 32).to(torch.float32)
                model(batch).square().mean().backward()
                optimizer.step()
                if step % 5 == 0:
                    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                    torch.save(state, "state.pt")
                    loaded = torch.load("state.pt")
                    model.load_state_dict(loaded["model"])
                    optimizer.load_state_dict(loaded["optimizer"])
        """,
    )
    size = sum(file.stat().st_size for file in (tmp_path / "run").iterdir())
    events = sum(len(part.rows) for part in run.timeline.parts)
    kinds = {event.did for event in run.timeline.events()}
    assert kinds >= {Did.CREATE, Did.COPY, Did.SAVE, Did.LOAD, Did.FREE, Did.PHASE}
    assert events > 2000
    assert size / events <= 40
