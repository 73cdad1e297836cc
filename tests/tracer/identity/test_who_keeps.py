"""What keeps a tensor is called by its name, whatever kind of container it is."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.identity.who_keeps import keeper  # noqa: E402


def test_a_state_dict_in_a_dict() -> None:
    merged = {"part": OrderedDict(weight=torch.ones(2))}
    assert keeper(merged["part"]["weight"]) == "the dict `merged`"


def test_other_containers() -> None:
    rows: defaultdict[str, list[object]] = defaultdict(list)
    rows["x"].append(torch.ones(2))
    last = deque([torch.ones(3)], maxlen=2)
    assert keeper(rows["x"][0]) == "the defaultdict `rows`"
    assert keeper(last[0]) == "the deque `last`"
