"""One flag beside pytest's own: `--complete` also runs what brings other releases of libraries."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.unmeasured import leave_guards_unmeasured

settings.register_profile(  # how fast the machine is decides no test
    "busy machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("busy machine")

MANY = 20
_MODULES = [0]
"""How many were imported when what stays was last set aside."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--complete",
        action="store_true",
        help="also test other releases of the real libraries, and what takes long",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    if config.getoption("--complete"):
        return
    other_releases = pytest.mark.skip(reason="only with --complete")
    for item in items:
        if "complete" in item.keywords:
            item.add_marker(other_releases)


def pytest_collection_finish() -> None:
    _set_aside_what_stays()
    leave_guards_unmeasured()


@pytest.fixture(autouse=True, scope="module")
def _set_aside_what_was_imported() -> None:
    if len(sys.modules) >= _MODULES[-1] + MANY:
        _set_aside_what_stays()
        leave_guards_unmeasured()


def _set_aside_what_stays() -> None:
    """What the tests have imported stays to the end. Collections of garbage and searches for
    modules, which many of them ask for, need not look at it each time."""
    gc.collect()
    gc.freeze()
    _MODULES.append(len(sys.modules))


@pytest.fixture(autouse=True)
def _accelerate_starts_anew() -> Iterator[None]:
    """accelerate keeps the devices of its first `Accelerator` for the whole process."""
    yield
    if state := sys.modules.get("accelerate.state"):
        state.AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def as_the_rule_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` reports errors and warnings as such also of rules of which it makes notes."""
    from tensortrail.findings import Severity
    from tensortrail.rules import all_rules

    for rule in all_rules().values():
        monkeypatch.setattr(rule, "warns", True)
        monkeypatch.setattr(rule, "errors_as", Severity.ERROR)
        monkeypatch.setattr(rule, "proven", True)
