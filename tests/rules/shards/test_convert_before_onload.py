"""SHD401: the order of conversion and onload, and the guards between them."""

from __future__ import annotations

import pytest

from tensortrail.analyzer.choosing.triggers import may_flag
from tensortrail.findings import Severity
from tensortrail.rules.shards.convert_before_onload import ConvertBeforeOnload
from tensortrail.testing import run

SAVE = """\
def save(model, state_dict, is_offloaded, sharded):
    if {condition}:
        state_dict = revert_weight_conversion(model, state_dict)
    for name in state_dict:
        write({load}(model, name))
"""


def save(condition: str = "sharded", load: str = "load_offloaded_parameter") -> str:
    return SAVE.format(condition=condition, load=load)


@pytest.mark.parametrize(
    "condition", ["sharded", "is_offloaded", "model.is_offloaded", "sharded and is_offloaded"]
)
def test_converted_before_it_is_loaded(condition: str) -> None:
    source = save(condition)
    [finding] = run(ConvertBeforeOnload, source)
    assert (finding.site.line, finding.severity) == (3, Severity.ERROR)
    assert "line 5" in finding.message
    assert [step.site.line for step in finding.trail] == [5]
    assert [each.name for each in finding.settings] == ["save_original_format"]
    assert may_flag(ConvertBeforeOnload, source.encode())


@pytest.mark.parametrize(
    "condition",
    [
        "not is_offloaded",
        "not model.is_offloaded and sharded",
        "is_offloaded is False",
        "all(each.device.type != 'meta' for each in state_dict.values())",
    ],
)
def test_nothing_is_offloaded_where_it_converts(condition: str) -> None:
    assert not run(ConvertBeforeOnload, save(condition))


def test_an_early_return_is_a_guard() -> None:
    source = """\
def save(model, state_dict, is_offloaded):
    if is_offloaded:
        return write(load_offloaded_parameters(model))
    state_dict = revert_weight_conversion(model, state_dict)
    write(state_dict)
"""
    assert not run(ConvertBeforeOnload, source)


@pytest.mark.parametrize("load", ["read", "prefetch", "layer.onload"])
def test_only_what_reads_weights_back_is_too_late(load: str) -> None:
    assert not run(ConvertBeforeOnload, save(load=load))


def test_in_a_loop_over_shards_another_rule_speaks() -> None:
    source = """\
def save(model, shards):
    for file, state_dict in shards.items():
        state_dict = revert_weight_conversion(model, state_dict)
        for name in state_dict:
            write(file, load_offloaded_parameter(model, name))
"""
    assert not run(ConvertBeforeOnload, source)
