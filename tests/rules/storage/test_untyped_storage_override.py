"""STO202: overrides of `untyped_storage` that make a storage up."""

from __future__ import annotations

import pytest

from tensortrail.rules.storage.untyped_storage_override import UntypedStorageOverride
from tensortrail.testing import run

CLASS = """\
import torch

class Base(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

class Packed(Base):
    def untyped_storage(self):
{body}
"""


def packed(*lines: str) -> str:
    return CLASS.format(body="\n".join(" " * 8 + line for line in lines))


@pytest.mark.parametrize(
    "lines",
    [
        ("return torch.UntypedStorage(0, device=self.device)",),
        ("return torch.empty(0, device=self.device).untyped_storage()",),
        ("made = torch.UntypedStorage(0)", "return made"),
        ("if self._data is None:", "    return torch.zeros(0).untyped_storage()"),
    ],
)
def test_a_storage_made_on_the_spot(lines: tuple[str, ...]) -> None:
    [finding] = run(UntypedStorageOverride, packed(*lines))
    assert finding.site.line == 9 + len(lines)
    assert finding.trail[0].site.line == 8
    assert "`Packed.untyped_storage()`" in finding.message


@pytest.mark.parametrize(
    "lines",
    [
        ("return self._data.untyped_storage()",),
        ("data = self._rows if self._rows is not None else self._columns",
         "return data.untyped_storage()"),
        ("return super().untyped_storage()",),
        ("raise NotImplementedError",),
    ],
)  # fmt: skip
def test_a_storage_of_the_tensor(lines: tuple[str, ...]) -> None:
    assert not run(UntypedStorageOverride, packed(*lines))
