"""The site has the pages that lie beside `docs/` too, and their links lead to one another."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "README.md": "project.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/history.md": "benchmarks-history.md",
}
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    for source, name in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    name = page.file.src_uri
    written_at = next((at for at, of in OUTSIDE.items() if of == name), f"docs/{name}")

    def led(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(written_at), match[1]))
        inside = OUTSIDE.get(target, target.removeprefix("docs/"))
        if inside == target:  # it is in no folder of the site
            return match[0]
        path = posixpath.relpath(inside, posixpath.dirname(name) or ".")
        return f"]({path}{match[2] or ''})"

    return LINK.sub(led, markdown)
