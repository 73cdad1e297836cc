"""Which files are found, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.reading.discover import discover, matches


def tree(folder: Path, *files: str) -> None:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")


def found(folder: Path, **options: object) -> list[str]:
    files = discover([str(folder)], **options).files  # type: ignore[arg-type]
    return [Path(file).relative_to(folder).as_posix() for file in files]


def test_python_files_in_a_fixed_order(tmp_path: Path) -> None:
    tree(tmp_path, "b.py", "a/z.py", "a/y.txt", ".venv/lib.py", "node_modules/m.py", "a.py")
    assert found(tmp_path) == ["a/z.py", "a.py", "b.py"]


def test_gitignore_of_every_level(tmp_path: Path) -> None:
    tree(tmp_path, "keep.py", "gen/one.py", "gen/two.py", "sub/local.py", "sub/kept.py", "top.py")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("gen/*\n!gen/two.py\n/top.py\n")
    (tmp_path / "sub" / ".gitignore").write_text("local.py\n")
    assert found(tmp_path) == ["gen/two.py", "keep.py", "sub/kept.py"]
    assert len(found(tmp_path, respect_gitignore=False)) == 6


def test_the_ignore_files_above_the_path_count(tmp_path: Path) -> None:
    tree(tmp_path, "src/gen.py", "src/ok.py")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("gen.py\n")
    assert found(tmp_path / "src") == ["ok.py"]


def test_a_file_named_outright_is_always_taken(tmp_path: Path) -> None:
    tree(tmp_path, ".venv/x.py", "note.txt")
    paths = [str(tmp_path / ".venv" / "x.py"), str(tmp_path / "note.txt")]
    assert discover(paths).files == paths


def test_nothing_twice(tmp_path: Path) -> None:
    tree(tmp_path, "a.py")
    assert len(discover([str(tmp_path), str(tmp_path / "a.py")]).files) == 1


def test_exclude(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "legacy/b.py", "x/legacy_c.py")
    assert found(tmp_path, exclude=["legacy", "*_c.py"]) == ["a.py"]


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("a/b.py", "b.py", True),
        ("a/b.py", "a", True),
        ("a/b.py", "a/", True),
        ("a/b.py", "a/*.py", True),
        ("a/b.py", "*/c.py", False),
        ("tests/x/y.py", "tests/*", True),
    ],
)
def test_patterns(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, pattern) is expected


def test_templates_are_left_out(tmp_path: Path) -> None:
    """Their names are filled in later, and so is what stands in them."""
    for name in ("{{cookiecutter.name}}/run.py", "src/model_{{name}}.py", "src/model.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    found = discover([str(tmp_path)])
    assert [Path(each).name for each in found.files] == ["model.py"]
    assert len(found.left_out) == 2
    named = str(tmp_path / "src" / "model_{{name}}.py")
    assert discover([named]).files == [named], "named outright"
