"""The picture shows every file by its size, and what is wrong where it is; it runs no script."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tensortrail.cli import main
from tests.cli.test_doctor_checkpoint import DATA, write


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "rect", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect",):
            assert self.open.pop() == tag


def drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, Seen]:
    page = folder.parent / "page.html"
    main(["doctor", str(folder), "--html", str(page)])
    capsys.readouterr()
    text, seen = page.read_text(encoding="utf-8"), Seen()
    seen.feed(text)
    assert not seen.open
    return text, seen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    place.mkdir()
    write(place / "model.safetensors")
    return place


def test_a_whole_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, seen = drawn(folder, capsys)
    assert "<script" not in text
    assert "http" not in re.sub(r'http-equiv="[^"]*"', "", text)
    kinds = [str(at.get("class")) for tag, at in seen.tags if tag == "rect"]
    assert kinds == ["rest", "c0", "c1"]
    assert "2 weights, 168 bytes" in text
    assert "red frame" not in text
    assert "pale" not in text
    assert "<b>0</b> findings" in text


def test_what_is_cut_off_is_pale_and_framed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "model.safetensors", DATA[:20])
    text, seen = drawn(folder, capsys)
    kinds = [str(at.get("class")) for tag, at in seen.tags if tag == "rect"]
    assert kinds == ["rest", "c0", "c1", "c1 lost", "damage"]
    assert '<li class="error"><b>CKP801</b> the file ends within the bytes of' in text
    assert "<code>hf download REPO model.safetensors --force-download</code>" in text
    assert "red frame" in text
    assert "pale" in text


def test_hostile_names_are_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = folder.parent / "<img src=x onerror=alert(1)>"
    folder.rename(hostile)
    text, seen = drawn(hostile, capsys)
    assert not [tag for tag, _ in seen.tags if tag == "img"]
    assert "&lt;img" in text


def test_one_folder_at_a_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "checkpoint", str(folder), str(folder), "--html", "x.html"]) == 2
    assert "--html takes one folder or file" in capsys.readouterr().err
