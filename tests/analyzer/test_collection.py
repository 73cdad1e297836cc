"""What judging leaves behind does not pile up in a process that goes on."""

from __future__ import annotations

import gc
import weakref

from tensortrail.analyzer.judging.collection import put_off


class Circle:
    def __init__(self) -> None:
        self.own = self


def test_what_was_made_meanwhile_is_collected_with_the_young() -> None:
    with put_off():
        assert not gc.isenabled()
        left = weakref.ref(Circle())
    assert gc.isenabled()
    gc.collect(0)
    assert left() is None


def test_it_stays_off_where_it_was_off() -> None:
    gc.disable()
    try:
        with put_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
