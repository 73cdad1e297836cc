"""OFF106, `context-not-exception-safe`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import findings, severity


def test_what_is_put_back_in_a_loop_is_named() -> None:
    source = """
    from contextlib import contextmanager

    @contextmanager
    def changed(self, **given):
        old_params = {key: getattr(self.params, key) for key in given}
        for key, value in given.items():
            setattr(self.params, key, value)
        yield
        for key, value in old_params.items():
            setattr(self.params, key, value)
    """
    (found,) = findings("OFF106", source)
    assert "`setattr(self.params, key, value)` is never called" in found.message


HELD = """
    from contextlib import contextmanager
    from torch import nn

    class Worker({base}):
        @contextmanager
        def onloaded(self, {given}):
            self.onload_weights()
            print({given})
            yield
            self.offload_weights()
    """


@pytest.mark.parametrize(
    ("base", "given", "expected"),
    [
        ("nn.Module", "on", Severity.WARNING),
        ("object", "model", Severity.NOTE),
        ("object", "model.name", Severity.WARNING),
        ("object", "model[0]", Severity.WARNING),
        ("object", "self.kept[model]", Severity.NOTE),
    ],
)
def test_whose_object_stays_changed(base: str, given: str, expected: Severity) -> None:
    source = HELD.format(base=base, given=given).replace(f"self, {given}", "self, model")
    assert severity("OFF106", source) is expected


ACTOR = """
    import ray
    from contextlib import contextmanager

    class WorkerImpl:
        @contextmanager
        def with_reference(self):
            self.load_reference_weights()
            yield
            self.load_weights()

    {how}
    class Worker(WorkerImpl):
        pass
    """


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("@ray.remote", Severity.WARNING),
        ("@ray.remote(num_gpus=1)", Severity.WARNING),
        ("@dataclass", Severity.NOTE),
    ],
)
def test_an_actor_lives_on_after_a_task_that_failed(how: str, expected: Severity) -> None:
    assert severity("OFF106", ACTOR.format(how=how)) is expected


KEPT = """
    import os
    from contextlib import contextmanager

    _kept = {start}

    @contextmanager
    def on_gpu(name):
        {how}
        yield model
        {back}
    """
MODEL = ("model = _kept[name].cuda()", "model.cpu()")
READ = ('device = os.environ["DEVICES"]', "device_process.stop()")
VARIABLE = ('os.environ["DEVICES"] = name', 'os.environ["DEVICES"] = before')


@pytest.mark.parametrize(
    ("start", "statements", "expected"),
    [
        ("{}", MODEL, Severity.WARNING),
        ("[]", MODEL, Severity.WARNING),
        ("load()", MODEL, Severity.NOTE),
        ("load()", VARIABLE, Severity.WARNING),
        ("load()", READ, Severity.NOTE),
    ],
)
def test_what_the_file_or_the_process_keeps(
    start: str, statements: tuple[str, str], expected: Severity
) -> None:
    how, back = statements
    assert severity("OFF106", KEPT.format(start=start, how=how, back=back)) is expected
