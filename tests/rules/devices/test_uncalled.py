"""DEV546 where a name of the function hides what the file imports."""

from __future__ import annotations

import pytest

from tensortrail.rules.devices.named.is_available_not_called import IsAvailableNotCalled
from tensortrail.testing.examples import run

HEAD = "from torch.compiler import is_compiling\n\n"


@pytest.mark.parametrize(("body", "lines"), [
    ("def lock(parent):\n    return [] if not is_compiling else parent\n", [4]),
    ("def lock(parent, is_compiling):\n    return [] if not is_compiling else parent\n", []),
    ("def lock(parent):\n    is_compiling = parent.flag\n    return not is_compiling\n", []),
])  # fmt: skip
def test_only_the_function_of_torch_is_flagged(body: str, lines: list[int]) -> None:
    found = run(IsAvailableNotCalled, HEAD + body)
    assert [each.site.line for each in found] == lines


PAIR = """
class Pair:
    {how}

def parts(values):
    return [each.npu if isinstance(each, Pair) else each for each in values]
"""


@pytest.mark.parametrize(("how", "lines"), [
    ("def npu(self):\n        return self.kept", [6]),
    ("@property\n    def npu(self):\n        return self.kept", []),
    ("def __init__(self, npu):\n        self.npu = npu", []),
])  # fmt: skip
def test_an_attribute_that_holds_something_needs_no_call(how: str, lines: list[int]) -> None:
    found = run(IsAvailableNotCalled, PAIR.format(how=how))
    assert [each.site.line - how.count("\n") for each in found] == lines
