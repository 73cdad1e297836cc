"""The docs hold together: links lead somewhere, generated parts are current, files exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensortrail.cli.reference import page

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/README.md"])
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for link in LINK.findall(FENCE.sub("", text)):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / each).resolve() for each in LINK.findall(index.read_text())}
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")]
    assert {each.resolve() for each in pages} - linked <= {index, index.parent / "guides/README.md"}


def test_the_command_line_is_documented_as_it_is() -> None:
    written = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert written == page(written), "python -m tensortrail.cli.reference writes it"


def test_the_map_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    table = text[text.index("## Where to look") : text.index("## The rooms")]
    there = {str(each.relative_to(ROOT / "tensortrail")) for each in ROOT.rglob("tensortrail/**/*")}
    for name in re.findall(r"`([\w/]+\.(?:py|toml))`", table):
        assert any(each == name or each.endswith(f"/{name}") for each in there), name
