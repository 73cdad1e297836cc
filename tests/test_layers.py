"""Layers point one way: cli -> analyzer | tracer | doctor -> rules -> findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rooms import (
    PAGE,
    ROOT,
    Graph,
    circles,
    contents,
    graph,
    imports,
    page_with,
    picture,
    room_of,
)

pytestmark = pytest.mark.long

MAY_USE = {
    "findings": set[str](),
    "inert": set[str](),
    "files": set[str](),
    "standard_error": set[str](),
    "collector": set[str](),
    "toml": set[str](),
    "config": {"files", "toml"},
    "patterns": set[str](),
    "plurals": set[str](),
    "rules": {"findings", "patterns", "plurals", "rules"},
    "reporters": {"findings", "inert", "plurals", "config", "reporters"},
    "analyzer": {"collector", "findings", "files", "patterns", "rules", "analyzer"},
    "tracer": {
        "collector",
        "findings",
        "files",
        "inert",
        "plurals",
        "standard_error",
        "rules",
        "toml",
        "tracer",
    },
    "doctor": {"findings", "files", "inert", "rules", "doctor"},
    "testing": {"findings", "rules", "analyzer", "doctor", "testing"},
    "cli": {
        "collector",
        "findings",
        "files",
        "inert",
        "plurals",
        "standard_error",
        "rules",
        "analyzer",
        "tracer",
        "doctor",
        "reporters",
        "config",
        "editor",
        "cli",
    },
    "editor": {"findings", "rules", "analyzer", "tracer", "config", "editor"},
    "__main__": {"cli"},
    "version": set[str](),
    "__init__": {"doctor", "tracer", "version"},
}
LIBRARIES = {
    "findings": set[str](),
    "rules": set[str](),
    "reporters": {"rich"},
    "analyzer": {"libcst", "pathspec"},
    "tracer": {"torch", "rich"},
    "doctor": {"torch"},
}
ROOMS = {
    "analyzer": (
        "reading", "syntax", "facts", "values", "places", "choosing", "fixing", "judging",
    ),
    "tracer": (
        "patching", "trail", "identity", "noticing", "events", "audit", "watching", "reading",
        "rehearsal", "explaining", "exports", "fleet", "hooks", "recording", "entrances",
    ),
}  # fmt: skip
"""Of a layer: each may import from those before it."""
ABOVE_ALL_ROOMS = {"analyzer": set[str](), "tracer": {"pytest_plugin"}}
FILES = sorted(ROOT.rglob("*.py"))


def layer_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def test_a_file_imports_from_its_own_layer_or_below() -> None:
    beyond = {str(path.relative_to(ROOT)): sorted(_beyond(path)) for path in FILES}
    assert {path: names for path, names in beyond.items() if names} == {}


def _beyond(path: Path) -> set[str]:
    """Layers that the file imports from and may not."""
    used = {name.split(".")[1] for name in imports(path) if name.startswith("tensortrail.")}
    layers = {name for name in used if (ROOT / name).exists() or (ROOT / f"{name}.py").exists()}
    return layers - MAY_USE[layer_of(path)] - {"version"}


def test_libraries_stay_in_their_layers() -> None:
    known = {"libcst", "rich", "pathspec", "platformdirs", "torch"}
    for path in FILES:
        used = {name.split(".")[0] for name in imports(path)} & known
        allowed = LIBRARIES.get(layer_of(path), {"rich"})
        assert used <= allowed, f"{path.relative_to(ROOT)} uses {sorted(used - allowed)}"


@pytest.mark.parametrize("layer", ROOMS)
def test_rooms_import_in_one_direction(layer: str) -> None:
    order = {f"{layer}.{room}": place for place, room in enumerate(ROOMS[layer])}
    upwards = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in sorted(others)
        if room_of(module) in order and order.get(room_of(other), -1) > order[room_of(module)]
    ]
    assert not upwards, "\n".join(upwards)


@pytest.mark.parametrize(
    ("inside", "some"),
    [
        ("tensortrail.rules.devices.shared.", {"named", "written_for"}),
        ("tensortrail.analyzer.places.", {"calls", "functions", "held"}),
        ("tensortrail.analyzer.facts.", {"texts", "project"}),
    ],
)
def test_folders_inside_of_a_room_import_in_one_direction(inside: str, some: set[str]) -> None:
    arrows: Graph = {}
    for module, others in graph().items():
        if module.startswith(inside):
            folder, *asked = (_folder_in(inside, each) for each in (module, *others))
            arrows.setdefault(folder, set()).update({*asked} - {folder, ""})
    assert some <= arrows.keys()
    assert not circles(arrows)


def _folder_in(inside: str, module: str) -> str:
    return module.removeprefix(inside).partition(".")[0] if module.startswith(inside) else ""


@pytest.mark.parametrize("layer", ROOMS)
def test_the_order_names_every_room(layer: str) -> None:
    folder = ROOT / layer
    assert {each.parent.name for each in folder.glob("*/__init__.py")} == set(ROOMS[layer])
    assert {each.stem for each in folder.glob("*.py")} == {"__init__"} | ABOVE_ALL_ROOMS[layer]


def test_no_modules_import_each_other() -> None:
    found = [[module.removeprefix("tensortrail.") for module in each] for each in circles(graph())]
    assert not found, "import circles:\n" + "\n".join(" <-> ".join(each) for each in found)


def test_a_circle_is_found() -> None:
    arrows = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str](), "e": {"d"}}
    assert circles(arrows) == [["a", "b", "c"]]


def test_half_of_the_files_are_short() -> None:
    lengths = sorted(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES)
    assert lengths[len(lengths) // 2] <= 100


def test_no_file_is_longer_than_anyone_wants_to_read() -> None:
    long = {path.name: n for path in FILES if (n := len(path.read_text().splitlines())) > 400}
    assert not long


def test_every_file_says_what_it_is() -> None:
    """Its docstring, or that of the rule in it: `python -m tests.rooms FOLDER` lists them."""
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in FILES}
    assert [
        path for path, text in texts.items() if text[:3] != '"""' and '    """' not in text
    ] == []


def test_a_room_is_listed_with_what_imports_others_first() -> None:
    listed = [line.split()[0] for line in contents(ROOT / "reporters")]
    assert listed[0] == "__init__.py"
    assert listed.index("text.py") < listed.index("excerpt.py")


def test_a_rule_is_listed_with_its_code_and_its_first_sentence() -> None:
    listed = contents(ROOT / "rules" / "devices" / "moves")
    assert any(line.split()[1:4] == ["DEV517", "The", "result"] for line in listed)


def test_folders_of_a_room_are_listed_too() -> None:
    listed = [line.split()[0] for line in contents(ROOT / "analyzer" / "places")]
    assert listed[0] == "__init__.py"
    assert {"calls/", "held/"} <= {*listed}


def test_the_picture_of_the_rooms_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with(picture(), page), "python -m tests.rooms draws it"
