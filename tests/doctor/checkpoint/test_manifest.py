"""`--manifest write` and `verify`: every change is seen, and nothing is written elsewhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tensortrail.cli import main
from tensortrail.doctor.checkpoint.examine import examine
from tests.doctor.checkpoint.test_folders import write_safetensors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    (place / "unet").mkdir(parents=True)
    write_safetensors(place / "model.safetensors", {"a": [2, 3], "b": [4, 4]})
    write_safetensors(place / "unet" / "model.safetensors", {"a": [2, 3]})
    (place / "config.json").write_text("{}")
    (place / ".cache").write_text("not listed")
    return place


def verify(folder: Path) -> list[tuple[str, str]]:
    found = examine(str(folder), manifest=True)
    assert not found.problems
    return [(finding.code, finding.message) for finding in found.findings]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 4
    path.write_bytes(bytes(content))


def test_the_list_is_that_of_sha256sum(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(folder), "--manifest", "write"]) == 0
    assert "lists 3 files" in capsys.readouterr().err
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    names = ["config.json", "model.safetensors", "unet/model.safetensors"]
    assert lines == [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}" for name in names
    ]
    assert verify(folder) == []
    assert main(["doctor", str(folder), "--manifest", "verify"]) == 0
    ran = {check.name for check in examine(str(folder), manifest=True).ran}
    assert {"checksum-differs", "file-not-in-manifest"} <= ran


CHANGES: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    "a flipped bit": (
        "CKP881",
        "'model.safetensors' differs from the checksum in SHA256SUMS",
        lambda folder: flip(folder / "model.safetensors"),
    ),
    "a flipped bit below": (
        "CKP881",
        "'unet/model.safetensors' differs from the checksum in SHA256SUMS",
        lambda folder: flip(folder / "unet" / "model.safetensors"),
    ),
    "a file removed": (
        "CKP881",
        "'config.json' is listed, but missing",
        lambda folder: (folder / "config.json").unlink(),
    ),
    "a file added": (
        "CKP882",
        "'extra.py' is not in SHA256SUMS",
        lambda folder: (folder / "extra.py").write_text("x"),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_seen(folder: Path, name: str) -> None:
    code, message, change = CHANGES[name]
    main(["doctor", str(folder), "--manifest", "write"])
    change(folder)
    assert verify(folder) == [(code, message)]
    assert not examine(str(folder)).findings
    assert main(["doctor", str(folder), "--manifest", "verify"]) == 1


@pytest.mark.parametrize("text", [None, "no checksum\n", "\xff", "ab  c\n"])
def test_a_list_that_is_none(folder: Path, text: str | None) -> None:
    if text is not None:
        (folder / "SHA256SUMS").write_bytes(text.encode("latin-1"))
    found = examine(str(folder), manifest=True)
    assert "the manifest was not verified" in found.problems[0]
    assert main(["doctor", str(folder), "--manifest", "verify"]) == 2


def test_names_that_lead_out_are_not_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    main(["doctor", str(folder), "--manifest", "write"])
    with (folder / "SHA256SUMS").open("a") as file:
        file.write(f"{'0' * 64}  ../secret\n")
    assert verify(folder) == [("CKP881", "'../secret' is listed, but missing")]


def test_a_link_out_of_the_project_is_not_written_through(folder: Path, tmp_path: Path) -> None:
    (folder / ".git").mkdir()
    target = tmp_path / "precious"
    target.write_text("precious")
    (folder / "SHA256SUMS").symlink_to(target)
    assert main(["doctor", str(folder), "--manifest", "write"]) == 2
    assert target.read_text() == "precious"


def megatrons(folder: Path, **changed: str) -> None:
    """As `save_integrity_manifest` of Megatron Core writes it."""
    files = {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in sorted(folder.iterdir())
        if each.is_file() and each.name != "integrity.json"
    }
    told = {"algorithm": "sha256", "files": files} | changed
    (folder / "integrity.json").write_text(json.dumps(told, indent=2), encoding="utf-8")


def test_the_list_of_megatron_core(folder: Path) -> None:
    megatrons(folder)
    assert verify(folder) == []
    flip(folder / "model.safetensors")
    told = "'model.safetensors' differs from the checksum in integrity.json"
    assert verify(folder) == [("CKP881", told)]
    (folder / "model.safetensors").unlink()
    (folder / "more.txt").write_bytes(b"PK")
    codes = [code for code, _ in verify(folder)]
    assert sorted(codes) == ["CKP881", "CKP882"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"algorithm": "md5", "files": {}}', "by 'md5', and not by sha256"),
        ("[]", "lists no files"),
        ('{"files": {"a": "12"}}', "'12' is not a checksum"),
        ("{", "not valid JSON"),
    ],
)
def test_a_list_of_megatron_core_that_is_none(folder: Path, text: str, why: str) -> None:
    (folder / "integrity.json").write_text(text, encoding="utf-8")
    (problem,) = examine(str(folder), manifest=True).problems
    assert why in problem


def test_a_list_that_leads_elsewhere_opens_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    files = {"../secret": hashlib.sha256(b"x").hexdigest()}
    (folder / "integrity.json").write_text(json.dumps({"files": files}), encoding="utf-8")
    told = [message for _, message in verify(folder)]
    assert "'../secret' is listed, but missing" in told
