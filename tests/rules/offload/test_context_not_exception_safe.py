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
    ],
)
def test_whose_object_stays_changed(base: str, given: str, expected: Severity) -> None:
    source = HELD.format(base=base, given=given).replace("self, model.name", "self, model")
    assert severity("OFF106", source) is expected
