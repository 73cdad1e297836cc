"""What the pages show is what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts import ROOT, current, pages

QUICK = "trace.md"

PAGES = [
    pytest.param(page, id=page.name, marks=[] if page.name == QUICK else [pytest.mark.complete])
    for page in pages()
]


@pytest.mark.real
@pytest.mark.parametrize("page", PAGES)
def test_the_page_shows_what_is_printed(page: Path) -> None:
    pytest.importorskip("torch")
    text = page.read_text(encoding="utf-8")
    assert current(text) == text, f"python -m tests.transcripts {page.relative_to(ROOT)}"
