"""SHD402: how loud, by what is known of the conversion."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tensortrail.rules.shards.group_split_across_shards import GroupSplitAcrossShards
from tensortrail.testing import run

LOOP = """\
{definition}
def save(shards, folder):
    for file, state_dict in shards.items():
        save_file({convert}(state_dict), file)
"""
STACKS = "def convert_weights(weights):\n    return torch.stack(list(weights.values()))\n"
RENAMES = "def convert_weights(weights):\n    return {k[6:]: v for k, v in weights.items()}\n"


@pytest.mark.parametrize(
    ("definition", "convert", "severity"),
    [
        ("", "revert_weight_conversion", Severity.WARNING),
        ("", "convert_fused_weights", Severity.WARNING),
        (STACKS, "convert_weights", Severity.WARNING),
        (RENAMES, "convert_weights", Severity.NOTE),
        ("", "convert_weights", Severity.NOTE),
    ],
)
def test_severity_follows_what_is_known(definition: str, convert: str, severity: Severity) -> None:
    [finding] = run(GroupSplitAcrossShards, LOOP.format(definition=definition, convert=convert))
    assert finding.severity is severity
    assert "shards.items()" in finding.trail[0].site.source


def test_settings_are_named_where_they_exist() -> None:
    source = LOOP.format(definition="", convert="revert_weight_conversion")
    [finding] = run(GroupSplitAcrossShards, source)
    settings = {each.name: each for each in finding.settings}
    assert settings["save_original_format"].value == "False"
    assert "larger" in settings["max_shard_size"].why
    [other] = run(GroupSplitAcrossShards, source.replace("revert_weight_", "convert_weight_"))
    assert not other.settings


def test_a_loop_over_anything_else_is_no_shard_loop() -> None:
    source = LOOP.format(definition="", convert="revert_weight_conversion")
    assert not run(GroupSplitAcrossShards, source.replace("shards", "models"))
