"""[tool.tensortrail]: what is accepted, and how a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.config import Config, ConfigError, keys, load


def write(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(text)
    return file


def test_the_nearest_file_with_our_table_counts(tmp_path: Path) -> None:
    write(tmp_path, '[tool.tensortrail]\nselect = ["OFF"]\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    write(tmp_path / "a", "[tool.ruff]\nline-length = 100\n")
    config = load(None, str(inner))
    assert config.select == ("OFF",)
    assert config.root == str(tmp_path)


def test_a_mark_at_the_beginning_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.tensortrail]\njobs = 3\n", encoding="utf-8-sig")
    assert load(None, str(tmp_path)).jobs == 3


@pytest.mark.parametrize("name", ["tensortrial", "tensorrail", "tensor-trail", "tensor_trails"])
def test_a_table_of_nearly_our_name(name: str, tmp_path: Path) -> None:
    write(tmp_path, f"[tool.{name}]\nselect = []\n")
    with pytest.raises(ConfigError, match="did you mean 'tensortrail'"):
        load(None, str(tmp_path))


@pytest.mark.parametrize("name", ["tensorflow", "tensorboard", "towncrier", "tensorstore"])
def test_tables_of_others_are_left_alone(name: str, tmp_path: Path) -> None:
    write(tmp_path, f"[tool.{name}]\nselect = []\n")
    assert load(None, str(tmp_path)) == Config()


def test_a_named_file_has_the_table(tmp_path: Path) -> None:
    write(tmp_path, "[project]\nname = 'x'\n")
    with pytest.raises(ConfigError, match="has no table"):
        load(str(tmp_path / "pyproject.toml"), str(tmp_path))


def test_nothing_configured(tmp_path: Path) -> None:
    write(tmp_path, "[project]\nname = 'x'\n")
    assert load(None, str(tmp_path)) == Config()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("selekt = []", "no key 'selekt' (did you mean 'select'?)"),
        ("select = 'OFF'", "select must be a list of strings, not 'OFF'"),
        ("select = [1]", "select must be a list of strings"),
        ("jobs = -1", "jobs must be a whole number"),
        ("jobs = true", "jobs must be a whole number"),
        ("respect-gitignore = 'yes'", "must be true or false"),
        ("output-format = 'xml'", "must be one of text, concise, json, sarif, github, gitlab"),
        ("per-file-ignores = ['x']", "must be a table"),
        ("zzz = 1", "(known: select,"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, line: str, told: str) -> None:
    file = write(tmp_path, f"[tool.tensortrail]\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load(None, str(tmp_path))
    assert str(file) in str(caught.value)
    assert told in str(caught.value)


def test_broken_toml_and_odd_tables(tmp_path: Path) -> None:
    write(tmp_path, "[tool.tensortrail\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(None, str(tmp_path))
    write(tmp_path, "[tool]\ntensortrail = 3\n")
    with pytest.raises(ConfigError, match="must be a table"):
        load(None, str(tmp_path))


def test_every_key_is_documented() -> None:
    text = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text(encoding="utf-8")
    missing = [key for key in keys() if f"`{key}`" not in text]
    assert not missing


def test_a_tool_that_is_no_table_is_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 3  # tensortrail\n")
    assert load(None, str(tmp_path)).select == ()
