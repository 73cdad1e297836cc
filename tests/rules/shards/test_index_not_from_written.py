"""SHD403: indexes that do not list what was written."""

from __future__ import annotations

import pytest

from tensortrail.analyzer.choosing.triggers import may_flag
from tensortrail.findings import Confidence, Severity
from tensortrail.rules.shards.index_not_from_written import IndexNotFromWritten
from tensortrail.testing import fixed, run


@pytest.mark.parametrize(
    ("given", "mended"),
    [
        ("({k: f} for k in keys)", "({k: f for k in keys})"),
        ("(({k: f} for k in keys))", "({k: f for k in keys})"),
        ("([{k: f} for k in keys if k])", "({k: f for k in keys if k})"),
        ("({k: f for k in s} for f, s in keys)", "({k: f for f, s in keys for k in s})"),
        ("(\n        {f'{k}': f}\n        for k in keys\n    )", "({f'{k}': f for k in keys})"),
    ],
)
def test_dicts_become_one_dict(given: str, mended: str) -> None:
    source = f"def save(weight_map, keys, f):\n    weight_map.update{given}\n"
    [finding] = run(IndexNotFromWritten, source)
    assert finding.severity is Severity.ERROR
    assert may_flag(IndexNotFromWritten, source.encode())
    assert fixed(IndexNotFromWritten, source).endswith(f"weight_map.update{mended}\n")


def test_the_mended_call_does_what_was_meant() -> None:
    source = "def save(weight_map, keys, f):\n    weight_map.update({k: f} for k in keys)\n"
    namespace: dict[str, object] = {}
    weight_map: dict[str, str] = {}
    exec(source, namespace)
    with pytest.raises(ValueError, match="length 1; 2 is required"):
        namespace["save"](weight_map, ["a", "b"], "one")  # type: ignore[operator]
    exec(fixed(IndexNotFromWritten, source), namespace)
    namespace["save"](weight_map, ["a", "b"], "one")  # type: ignore[operator]
    assert weight_map == {"a": "one", "b": "one"}


def test_what_is_no_dict_may_take_dicts() -> None:
    source = "def save(table, rows):\n    table.update({'id': row} for row in rows)\n"
    [finding] = run(IndexNotFromWritten, source)
    assert (finding.severity, finding.confidence) == (Severity.NOTE, Confidence.LOW)
    assert not finding.fixes


def test_a_dict_is_known_by_what_it_was_made_from() -> None:
    source = "def save(rows):\n    found = {}\n    found.update({row: 1} for row in rows)\n"
    assert [each.severity for each in run(IndexNotFromWritten, source)] == [Severity.ERROR]


LISTED = """\
def split(weights, file):
    shard, others = {{}}, []
    for key, tensor in weights.items():
        {body}
    {after}
    return {{"weight_map": {{key: file for key in weights}}}}
"""
SKIP = "if tensor is None:\n            continue\n        shard[key] = tensor"


def listed(body: str, after: str = "save_file(shard, file)") -> str:
    return LISTED.format(body=body, after=after)


def test_an_index_of_all_keys_beside_a_loop_that_skips() -> None:
    [finding] = run(IndexNotFromWritten, listed(SKIP))
    assert finding.severity is Severity.ERROR
    assert [step.site.line for step in finding.trail] == [5]


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (SKIP, "weights = shard"),
        (SKIP, "weights.pop('spare')"),
        (SKIP, "del weights['spare']"),
        ("if tensor is None:\n            continue\n        total = tensor.nbytes", "pass"),
        (SKIP.replace("continue", "others.append(key)\n            continue"), "pass"),
        (SKIP.replace("continue", "shard[key] = 0\n            continue"), "pass"),
    ],
    ids=["replaced", "popped", "deleted", "only counted", "kept elsewhere", "kept as it is"],
)
def test_no_entry_is_lost(body: str, after: str) -> None:
    assert not run(IndexNotFromWritten, listed(body, after))


ADAPTER = """\
from base import StateDictAdapter

class Adapter(StateDictAdapter):
    def {method}(self, state_dict):
        result = {{}}
        for key, value in state_dict.items():
            if {test}:
                {before}
                continue
            result[key] = value
        return result
"""
BASE = {"base.py": "class StateDictAdapter:\n    fqn_to_index_mapping: dict[str, int]\n"}


def adapter(
    method: str = "to_hf", test: str = "self.tied and key == 'head'", before: str = "pass"
) -> str:
    return ADAPTER.format(method=method, test=test, before=before)


def test_a_weight_left_out_stays_in_the_mapping() -> None:
    source = adapter()
    [finding] = run(IndexNotFromWritten, source, BASE)
    assert finding.site.line == 9
    assert finding.severity is Severity.WARNING
    assert "`head`" in finding.message
    assert may_flag(IndexNotFromWritten, source.encode())


@pytest.mark.parametrize(
    "source",
    [
        adapter(before="self.fqn_to_index_mapping.pop('head', None)"),
        adapter(test="key not in self.names"),
        adapter(method="from_hf"),
    ],
    ids=["taken out of the mapping", "has no name there", "reads"],
)
def test_a_mapping_that_agrees(source: str) -> None:
    assert not run(IndexNotFromWritten, source, BASE)


def test_without_a_mapping_there_is_no_index_to_be_wrong() -> None:
    other = {"base.py": "class StateDictAdapter:\n    pass\n"}
    assert not run(IndexNotFromWritten, adapter(), other)
