"""The docs hold together: links lead somewhere, generated parts are current, files exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tensortrail import config
from tensortrail.cli import trace
from tensortrail.cli.parser import parser
from tensortrail.cli.reference import page

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CONFIGURED = r"^\| `([\w-]+)` \| [\w ]+ \| `([^`]+)` \|"
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


def commands() -> Iterator[str]:
    """The `tensortrail` commands that the pages name, in blocks of a shell and in tables."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            yield from (line.partition("#")[0] for line in block.splitlines())
        if path.name in ("assistants.md", "troubleshooting.md", "README.md", "faq.md"):
            yield from re.findall(r"`(tensortrail [a-z][^`]*)`", text)


@pytest.mark.parametrize(
    "command", sorted({each.strip() for each in commands() if each.startswith("tensortrail ")})
)
def test_the_commands_on_the_pages_can_be_typed(command: str) -> None:
    words = shlex.split(re.sub(r"[|>].*", "", command))[1:]
    if "..." in words or words[-1:] == ["--help"]:
        return
    if words[0] == "trace":
        trace.parser().parse_args(trace.split(words[1:])[0])
    else:
        parser().parse_args(words)


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("material")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rules" / "moved-alone.html").is_file()
    first = (tmp_path / "project.html").read_text(encoding="utf-8")
    assert 'href="guides/offload.html' in first


def test_the_python_page_prints_what_it_shows() -> None:
    pytest.importorskip("torch")
    from tests.page_run import current

    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert current(written) == written, "python -m tests.page_run docs/api.md writes it"


def test_the_python_page_names_what_a_run_offers() -> None:
    from tensortrail.tracer.entrances.block import Run

    written = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    offered = [name for name in vars(Run) if not name.startswith("_")]
    assert not [name for name in offered if f"`{name}" not in written]


def test_the_configuration_is_documented_as_it_is(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    default = tomllib.loads(
        "\n".join(f"{key} = {value}" for key, value in re.findall(CONFIGURED, text, re.MULTILINE))
    )
    assert list(default) == config.keys()
    file = tmp_path / "pyproject.toml"
    for key, value in default.items():
        file.write_text(f"[tool.tensortrail]\n{key} = {_as_toml(value)}\n")
        assert _without_file(config.load(str(file), ".")) == config.Config(), key
    [example] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    file.write_text(example)
    config.load(str(file), ".")
    assert set(tomllib.loads(example)["tool"]["tensortrail"]) == set(config.keys())


def _as_toml(value: object) -> str:
    return "{}" if value == {} else json.dumps(value)


def _without_file(loaded: config.Config) -> config.Config:
    return loaded._replace(file="")


def test_the_map_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8")
    table = text[text.index("## Where to look") : text.index("## Layers")]
    there = {str(each.relative_to(ROOT / "tensortrail")) for each in ROOT.rglob("tensortrail/**/*")}
    names = re.findall(r"`([\w/]+\.(?:py|toml))`", table)
    assert len(names) > 50
    for name in names:
        assert any(each == name or each.endswith(f"/{name}") for each in there), name
