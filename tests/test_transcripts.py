"""What the pages show is what the commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts import ROOT, current, pages


@pytest.mark.real
@pytest.mark.complete
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_page_shows_what_is_printed(page: Path) -> None:
    pytest.importorskip("torch")
    text = page.read_text(encoding="utf-8")
    assert current(text) == text, f"python -m tests.transcripts {page.relative_to(ROOT)}"
