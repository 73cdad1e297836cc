"""STO212, `loss-keeps-graph`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity, severity_in_package


@pytest.mark.parametrize(
    ("keeper", "expected"),
    [("Meter()", None), ("[]", Severity.WARNING), ("list()", Severity.WARNING)],
)
def test_a_meter_may_keep_the_number_alone(keeper: str, expected: Severity | None) -> None:
    source = f"""
    from tools import Meter

    def train(model, loader, optimizer):
        kept = {keeper}
        for batch in loader:
            loss = model(batch)
            loss.backward()
            optimizer.step()
            kept.{"add" if keeper == "Meter()" else "append"}(loss)
        return kept
    """
    assert severity("STO212", source) is expected


@pytest.mark.parametrize(
    ("made", "steps", "expected"),
    [
        ("engine.gradient_accumulation_steps()", "self.steps", None),
        ("0", "self.engine.gradient_accumulation_steps()", None),
        ("engine.total_steps()", "self.steps", Severity.WARNING),
    ],
)
def test_the_micro_batches_of_one_step(made: str, steps: str, expected: Severity | None) -> None:
    source = f"""
    class Trial:
        def __init__(self, engine):
            self.engine, self.criterion = engine, engine.criterion
            self.steps = {made}

        def train_batch(self, batches):
            total = 0.0
            for _ in range({steps}):
                loss = self.criterion(next(batches))
                self.engine.backward(loss)
                self.engine.step()
                total += loss
            return total
    """
    assert severity("STO212", source) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("loss.backward()\n        optimizer.step()\n        return loss, 1", Severity.WARNING),
        ("(loss / 4).sum().backward()\n        return loss, 1", None),
        ("loss.backward()\n        return loss, 1", None),
        ("loss.backward()\n        optimizer.step()\n        return loss.item(), 1", None),
        ("loss.backward()\n        optimizer.step()\n        return 1, loss", None),
    ],
)
def test_a_loss_that_another_function_returns(body: str, expected: Severity | None) -> None:
    source = f"""
    def stepped(model, optimizer, batch):
        loss = model(batch)
        {body}

    def train(model, loader, optimizer):
        total = 0
        for batch in loader:
            loss, seen = stepped(model, optimizer, batch)
            total += loss
        return total
    """
    assert severity("STO212", source) is expected


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("loss.cpu()", Severity.WARNING),
        ("loss.mean().float() * 2", Severity.WARNING),
        ("loss.detach().cpu()", None),
        ("loss.mean().item()", None),
    ],
)
def test_methods_that_keep_the_graph(kept: str, expected: Severity | None) -> None:
    source = f"""
    def train(model, loader, optimizer):
        total = 0
        for batch in loader:
            loss = model(batch)
            loss.backward()
            optimizer.step()
            total += {kept}
        return total
    """
    assert severity("STO212", source) is expected


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ("self.total += value * n", Severity.WARNING),
        ("self.total = self.total + value", Severity.WARNING),
        ("self.total += hvd.allreduce(value.cpu())", Severity.WARNING),
        ("self.total += float(value)", None),
        ("self.last = value", None),
    ],
)
def test_a_meter_of_another_file(tmp_path: Path, added: str, expected: Severity | None) -> None:
    meters = f"""import horovod.torch as hvd

class Mean(object):
    def update(self, value, n=1):
        {added}
"""
    source = """from pkg.meters import Mean

class Gate:
    def __init__(self):
        self.mean = Mean()

    def train(self, model, loader, optimizer):
        for x in loader:
            loss = model(x)
            loss.backward()
            optimizer.step()
            self.mean.update(loss, n=len(x))
        return self.mean
"""
    assert severity_in_package(tmp_path, "STO212", source, meters=meters) is expected
