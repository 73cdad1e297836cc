"""SHD407: which deletions may take the only copy of the weights."""

from __future__ import annotations

import pytest

from tensortrail.analyzer.choosing.triggers import may_flag
from tensortrail.rules.shards.source_deleted_before_read import SourceDeletedBeforeRead
from tensortrail.testing import run

SAVE = """\
import os, shutil
from pathlib import Path

def save(model, folder, names):
    {delete}
    for name in names:
        write(folder, load_offloaded_parameter(model, name))
"""


@pytest.mark.parametrize(
    "delete",
    [
        "shutil.rmtree(folder)",
        "for file in os.listdir(folder): os.remove(os.path.join(folder, file))",
        "for file in Path(folder).glob('*.safetensors'): file.unlink()",
        "if os.path.exists(folder): os.unlink(folder)",
    ],
)
def test_deleted_first_read_later(delete: str) -> None:
    source = SAVE.format(delete=delete)
    [finding] = run(SourceDeletedBeforeRead, source)
    assert finding.site.line == 5
    assert finding.trail[0].site.line == 7
    assert may_flag(SourceDeletedBeforeRead, source.encode())


@pytest.mark.parametrize(
    "delete",
    [
        "os.remove(tmp_file)",
        "shutil.rmtree(cache_dir)",
        "if not model.is_offloaded: shutil.rmtree(folder)",
        "if not os.path.samefile(folder, model.source): shutil.rmtree(folder)",
        "weights = load_offloaded_parameters(model); shutil.rmtree(folder)",
        "queue.remove(folder)",
    ],
)
def test_no_source_is_lost(delete: str) -> None:
    assert not run(SourceDeletedBeforeRead, SAVE.format(delete=delete))
