"""SHD408: order matters only where groups are converted shard by shard."""

from __future__ import annotations

import pytest

from tensortrail.findings import Safety, Severity
from tensortrail.rules.shards.order_decides_split import OrderDecidesSplit
from tensortrail.testing import run

SAVE = """\
def save(model, state_dict):
    {before}
    split = split_torch_state_dict_into_shards({given}, max_shard_size="5GB")
    for file, names in split.filename_to_tensors.items():
        shard_state_dict = {{name: read(name) for name in names}}
        save_file({convert}(model, shard_state_dict), file)
"""


def save(
    before: str = "pass", given: str = "state_dict", convert: str = "revert_weight_conversion"
) -> str:
    return SAVE.format(before=before, given=given, convert=convert)


def test_unsorted_and_converted_by_shard() -> None:
    [finding] = run(OrderDecidesSplit, save())
    assert (finding.site.line, finding.severity) == (3, Severity.NOTE)
    assert [fix.safety for fix in finding.fixes] == [Safety.UNSAFE]
    assert finding.trail[0].site.line == 6


@pytest.mark.parametrize(
    "source",
    [
        save(given="dict(sorted(state_dict.items()))"),
        save(before="state_dict = {k: state_dict[k] for k in sorted(state_dict)}"),
        save(before="state_dict = sort_by_name(state_dict)"),
        save(convert="checked"),
    ],
    ids=["sorted in the call", "sorted before", "sorted by a helper", "nothing converted"],
)
def test_groups_stay_together(source: str) -> None:
    assert not run(OrderDecidesSplit, source)
