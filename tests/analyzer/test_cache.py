"""What is remembered, and when it is not believed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest, FileResult
from tensortrail.analyzer.judging import cache_folder
from tensortrail.analyzer.judging.cache import Cache
from tensortrail.analyzer.judging.cache_folder import FILE
from tensortrail.analyzer.judging.engine import check
from tensortrail.findings import Confidence, Finding, Severity, Site

BASE = "import torch\nclass BaseTensor(torch.Tensor):\n    pass\n"
WRAPPER = """import torch
class BaseTensor(torch.Tensor):
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)
"""
CHILD = """import torch
from pkg.base import BaseTensor
class Child(BaseTensor):
    def untyped_storage(self):
        return torch.UntypedStorage(0)
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.empty_like.default:
            return cls.make(args[0])
        return func(*plain(args))
"""

FOUND = Finding("OFF101", "a", "m", Severity.ERROR, Confidence.HIGH, Site("a.py", 1))


def touch(path: Path, text: str) -> None:
    path.write_text(text)
    stamp = path.stat().st_mtime_ns + 5_000_000
    os.utime(path, ns=(stamp, stamp))


def test_a_stored_file_is_believed_until_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    cache = Cache(str(tmp_path / "cache"), str(tmp_path), "v1")
    result = FileResult(str(file), (FOUND,), digest="abc")
    cache.put(result)
    cache.save()
    assert Cache(str(tmp_path / "cache"), str(tmp_path), "v1").get(str(file)) == result
    touch(file, "x = 2\n")
    assert Cache(str(tmp_path / "cache"), str(tmp_path), "v1").get(str(file)) is None


def test_another_version_or_selection_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    cache = Cache(str(tmp_path / "cache"), str(tmp_path), "v1")
    cache.put(FileResult(str(file)))
    cache.save()
    assert Cache(str(tmp_path / "cache"), str(tmp_path), "v1").get(str(file)) == FileResult(
        str(file)
    )
    assert Cache(str(tmp_path / "cache"), str(tmp_path), "v2").get(str(file)) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b'["v1", 3]', b'["v1", {"%s": [1, 2, 3]}]', b"[" * 100_000],
)
def test_a_damaged_cache_is_no_cache(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / FILE).write_bytes(content)
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    assert Cache(str(folder), str(tmp_path), "v1").get(str(file)) is None


def test_an_unwritable_place_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    cache = Cache(str(tmp_path / "taken"), str(tmp_path), "v1")
    cache.put(FileResult(str(file)))
    cache.save()
    assert (tmp_path / "taken").read_text().startswith("a file")


def test_the_cache_hides_from_git_and_backups(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    cache = Cache(str(tmp_path / "cache"), str(tmp_path), "v1")
    cache.put(FileResult(str(file)))
    cache.save()
    assert (tmp_path / "cache" / ".gitignore").read_text() == "*\n"
    stored = json.loads((tmp_path / "cache" / FILE).read_text().partition("\n")[2])
    assert list(stored[2]) == ["a.py"]


def test_findings_follow_the_files_they_depend_on(tmp_path: Path) -> None:
    """A class turns into a wrapper subclass when its base, in another file, does."""
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text(BASE)
    (package / "child.py").write_text(CHILD)
    request = CheckRequest(
        paths=(str(tmp_path),),
        cache_dir=str(tmp_path / "cache"),
        codes=frozenset({"NEW304"}),
    )
    assert check(request).findings == ()
    assert check(request).findings == ()
    touch(package / "base.py", WRAPPER)
    assert [each.code for each in check(request).findings] == ["NEW304"]
    assert [each.code for each in check(request).findings] == ["NEW304"]


def test_what_is_needed_no_more_is_forgotten(tmp_path: Path) -> None:
    file, needed = tmp_path / "a.py", tmp_path / "b.py"
    file.write_text("x = 1\n")
    for text in ("y = 1\n", "y = 22\n", "y = 333\n"):
        touch(needed, text)
        os.utime(needed, ns=(1, len(text)))
        cache = Cache(str(tmp_path / "cache"), str(tmp_path), "v1")
        assert cache.get(str(file)) is None
        cache.put(FileResult(str(file), needs=(str(needed),)))
        cache.save()
        known = Cache(str(tmp_path / "cache"), str(tmp_path), "v1").get(str(file))
        assert known == FileResult(str(file), needs=(str(needed),))
    stored = json.loads((tmp_path / "cache" / FILE).read_text().partition("\n")[2])
    assert [row[:2] for row in stored[1]] == [[str(needed), len(text)]]


def test_a_folder_that_could_not_be_begun_may_be_the_cache_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: `.gitignore` was written, and the tag could not be."""
    folder = str(tmp_path / "cache")
    with monkeypatch.context() as full:
        full.setattr(cache_folder, "_TAG_FILE", "no/room")
        with pytest.raises(OSError):
            cache_folder.prepare(folder)
    assert os.listdir(folder) == []
    assert not cache_folder.refused(folder, str(tmp_path))
    cache_folder.prepare(folder)
    assert not cache_folder.refused(folder, str(tmp_path))
