"""Which libraries a program had loaded."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from tensortrail.tracer.recording.libraries import loaded_versions


def test_what_is_loaded_has_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ModuleType("peft")
    made.__version__ = "1.2"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "peft", made)
    assert loaded_versions()["peft"] == "1.2"


def test_a_library_whose_import_is_forbidden_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    assert "peft" not in loaded_versions()
