"""A save of transformers that fails with one fixed text, and what really stopped it."""

from __future__ import annotations

from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

from tests.real.hf.models import program  # noqa: E402
from tests.rules.recorded import Seen, watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
SAVE = 'model.save_pretrained(folder + "/again", max_shard_size="100KB")'
LOADS = 'type(made).from_pretrained(folder + "/again")'
BROKEN = """
from transformers.core_model_loading import ConversionOps
class Breaks(ConversionOps):
    def convert(self, *args, **kwargs):
        raise MemoryError("no room for the joined weight")
    @property
    def reverse_op(self):
        return self
model._weight_conversions[-1].operations[:] = [Breaks()]
"""


def ernie(folder: Path, then: str, code: str) -> Seen:
    return watched(folder, program("Ernie4_5_VLMoe", then), code)


def test_the_exception_behind_the_fixed_text_is_told(tmp_path: Path) -> None:
    seen = ernie(tmp_path, SAVE + "  # flagged", "SHD404")
    cause = getattr(seen.error, "__context__", None)
    assert isinstance(seen.error, RuntimeError)
    assert isinstance(cause, ValueError)
    assert f"ValueError in `revert_weight_conversion`: {cause}" in seen.only.message
    assert str(seen.error) in seen.only.evidence["raised"]
    limit, original = seen.only.settings
    assert limit.name == "max_shard_size"
    assert int(limit.value) > 100_000
    assert (original.name, original.value) == ("save_original_format", "False")
    assert limit.at is not None
    assert limit.at.line == seen.only.site.line


def test_a_cause_that_has_nothing_to_do_with_files_is_told_too(tmp_path: Path) -> None:
    then = BROKEN + 'model.save_pretrained(folder + "/again")  # flagged'
    seen = watched(tmp_path, program("NomicBert", then), "SHD404")
    assert "different shard files" in str(seen.error)
    assert "MemoryError" in seen.only.message
    assert "no room for the joined weight" in seen.only.message
    assert [each.name for each in seen.only.settings] == ["save_original_format"]


def test_the_groups_of_this_failure_are_told_with_a_size_that_works(tmp_path: Path) -> None:
    """Upstream's text says to reduce the size."""
    size = ernie(tmp_path, SAVE + "  # flagged", "SHD402").only.settings[0]
    assert int(size.value) > 100_000
    again = tmp_path / "mended"
    again.mkdir()
    mended = SAVE.replace('"100KB"', size.value)
    seen = ernie(again, f"{mended}\n{LOADS}", "SHD402")
    assert not seen.found


def test_without_converting_nothing_fails(tmp_path: Path) -> None:
    then = SAVE[:-1] + f", save_original_format=False)\n{LOADS}"
    assert not ernie(tmp_path, then, "SHD404").found


def test_a_failure_that_shows_itself_is_not_told(tmp_path: Path) -> None:
    then = BROKEN + "made._weight_conversions = model._weight_conversions\ntry:\n"
    then += '    made.save_pretrained(folder + "/again")\nexcept MemoryError:\n    pass'
    assert not watched(tmp_path, program("NomicBert", then), "SHD404").found
