"""Layers point one way: cli -> analyzer | tracer | doctor -> rules -> findings."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tensortrail

ROOT = Path(tensortrail.__file__).parent
MAY_USE = {
    "findings": set[str](),
    "inert": set[str](),
    "config": set[str](),
    "rules": {"findings", "rules"},
    "reporters": {"findings", "inert", "reporters"},
    "analyzer": {"findings", "rules", "analyzer"},
    "tracer": {"findings", "inert", "rules", "tracer"},
    "doctor": {"findings", "inert", "rules", "doctor"},
    "testing": {"findings", "rules", "analyzer", "doctor"},
    "cli": {
        "findings",
        "inert",
        "rules",
        "analyzer",
        "tracer",
        "doctor",
        "reporters",
        "config",
        "cli",
    },
    "editor": {"findings", "rules", "analyzer", "config", "editor"},
    "__main__": {"cli"},
    "__init__": {"tracer"},
}
LIBRARIES = {
    "findings": set[str](),
    "rules": set[str](),
    "reporters": {"rich"},
    "analyzer": {"libcst", "pathspec"},
    "tracer": {"torch", "rich"},
    "doctor": {"torch"},
}
FILES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module imported anywhere in the file, late imports too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_from_its_own_layer_or_below(path: Path) -> None:
    allowed = MAY_USE[layer_of(path)]
    used = {name.split(".")[1] for name in imports(path) if name.startswith("tensortrail.")}
    beyond = {name for name in used if (ROOT / name).exists() or (ROOT / f"{name}.py").exists()}
    assert beyond <= allowed, f"{path.name} reaches into {sorted(beyond - allowed)}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_libraries_stay_in_their_layers(path: Path) -> None:
    known = {"libcst", "rich", "pathspec", "platformdirs", "torch"}
    used = {name.split(".")[0] for name in imports(path)} & known
    allowed = LIBRARIES.get(layer_of(path), {"rich"})
    assert used <= allowed, f"{path.name} uses {sorted(used - allowed)}"


def test_no_file_is_longer_than_anyone_wants_to_read() -> None:
    long = {path.name: n for path in FILES if (n := len(path.read_text().splitlines())) > 400}
    assert not long
