"""STO205: names and keys made of addresses."""

from __future__ import annotations

import pytest

from tensortrail.findings import Confidence, Severity
from tensortrail.rules.storage.unstable_identity_key import UnstableIdentityKey
from tensortrail.testing import fixed, run

CACHE = """\
import weakref

class Cache:
    values = weakref.WeakKeyDictionary()

    def keep(self, value, device):
        moved = {made}
        self.values[value] = moved
"""


@pytest.mark.parametrize(
    "line",
    [
        'path = folder + f"/group_{id(group)}.safetensors"',
        'cache_file = f"{folder}/{id(group)}"',
        'kept = os.path.join(folder, f"group_{id(group)}")',
        'torch.save(group, f"group_{id(group)}.pt")',
    ],
)
def test_an_address_in_the_name_of_a_file(line: str) -> None:
    source = f"import os\nimport torch\n\ndef save(folder, group):\n    {line}\n"
    [finding] = run(UnstableIdentityKey, source)
    assert "the file outlives `group`" in finding.message
    assert finding.site.line == 5


@pytest.mark.parametrize(
    "line",
    [
        'print(f"group {id(group)}")',
        'logger.debug(f"loaded {id(group)} at {now}")',
        'filename = f"<wrapped {id(group)}>"',
        "memo[id(group)] = group",
    ],
)
def test_addresses_that_leave_nothing_behind(line: str) -> None:
    assert not run(UnstableIdentityKey, f"def show(group, memo, now):\n    {line}\n")


@pytest.mark.parametrize("made", ["value.to(device)", "value.cpu()", "value.contiguous()"])
def test_a_weak_cache_whose_value_may_be_its_key(made: str) -> None:
    source = CACHE.format(made=made)
    [finding] = run(UnstableIdentityKey, source)
    assert finding.site.line == 8
    assert finding.trail[0].site.line == 7
    mended = fixed(UnstableIdentityKey, source)
    assert "        if moved is not value:\n            self.values[value] = moved\n" in mended


@pytest.mark.parametrize("made", ["value.clone()", "other.to(device)"])
def test_a_weak_cache_whose_value_is_never_its_key(made: str) -> None:
    assert not run(UnstableIdentityKey, CACHE.format(made=made))


def test_storages_compared_as_objects() -> None:
    source = "def view(a, b):\n    return a.untyped_storage() is {}b.untyped_storage()\n"
    for negation in ("", "not "):
        [finding] = run(UnstableIdentityKey, source.format(negation))
        assert (finding.severity, finding.confidence) == (Severity.NOTE, Confidence.MEDIUM)
    assert not run(UnstableIdentityKey, source.format(""), path="tests/test_view.py")
