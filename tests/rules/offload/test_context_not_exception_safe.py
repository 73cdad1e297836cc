"""OFF106, `context-not-exception-safe`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from tests.rules.judged import findings


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
