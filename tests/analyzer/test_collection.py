"""What is made while collection is put off is not gone through when it begins again."""

from __future__ import annotations

import gc

from tensortrail.analyzer.judging.collection import put_off


def test_what_was_made_counts_as_old() -> None:
    assert gc.isenabled()
    gc.collect()
    with put_off():
        assert not gc.isenabled()
        made = [[number] for number in range(50_000)]
    assert gc.isenabled()
    young = {id(each) for each in (*gc.get_objects(generation=0), *gc.get_objects(generation=1))}
    assert not young.intersection(map(id, made))


def test_collection_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with put_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
