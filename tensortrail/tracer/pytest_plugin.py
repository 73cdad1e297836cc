"""The options of pytest: `--tensortrail` records, `--rehearse` simulates GPUs."""

from __future__ import annotations

import importlib.util
from argparse import Namespace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tensortrail.tracer.entrances.rehearsed_tests import RehearsedTests


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tensortrail")
    group.addoption("--tensortrail", action="store_true", help="record what tensors do")
    group.addoption(
        "--tensortrail-directory", metavar="DIR", help="the folder for the trail (.tensortrail/...)"
    )
    group.addoption(
        "--tensortrail-check",
        action="store_true",
        help="record, and exit with 1 if a finding of the run is an error",
    )
    group.addoption(
        "--rehearse", metavar="DEVICES", help="simulate these GPUs: cuda, cuda:2, cuda:2x24GiB"
    )
    group.addoption(
        "--rehearse-xfail",
        metavar="FILE",
        help="a file of tests that are known to fail in a rehearsal, one a line (# reason)",
    )
    group.addoption(
        "--move-inputs",
        action="store_true",
        help="in a rehearsal, run the modules of CPU tests on a simulated GPU",
    )
    group.addoption(
        "--spread-modules",
        action="store_true",
        help="like --move-inputs, and try each module spread over two GPUs and offloaded",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any file of the project is imported: what looks for devices finds them."""
    options = early_config.known_args_namespace
    if not options.rehearse:
        _refuse_what_needs_a_rehearsal(options)
        return
    if importlib.util.find_spec("torch") is None:
        raise pytest.UsageError("--rehearse needs torch: pip install 'tensortrail[trace]'")
    early_config.pluginmanager.register(_rehearsal(options), "tensortrail-rehearsal")
    if options.move_inputs or options.spread_modules:
        from tensortrail.tracer.entrances.moved_inputs import MovedInputs

        moved = MovedInputs(early_config, options.spread_modules)
        early_config.pluginmanager.register(moved, "tensortrail-moved-inputs")


def _refuse_what_needs_a_rehearsal(options: Namespace) -> None:
    for given, name in (
        (options.rehearse_xfail, "--rehearse-xfail"),
        (options.move_inputs, "--move-inputs"),
        (options.spread_modules, "--spread-modules"),
    ):
        if given:
            raise pytest.UsageError(f"{name} needs --rehearse")


def _rehearsal(options: Namespace) -> RehearsedTests:
    from tensortrail.tracer.entrances.expected_failures import expected_failures
    from tensortrail.tracer.entrances.rehearsed_tests import RehearsedTests

    try:
        xfail = expected_failures(options.rehearse_xfail) if options.rehearse_xfail else []
        return RehearsedTests(
            options.rehearse,
            options.tensortrail_directory,
            keep=options.tensortrail,
            check=options.tensortrail_check,
            xfail=xfail,
        )
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"--rehearse: {error}") from error


def pytest_configure(config: pytest.Config) -> None:
    check = config.getoption("--tensortrail-check")
    if (config.getoption("--tensortrail") or check) and not config.getoption("--rehearse"):
        from tensortrail.tracer.entrances.recorded_tests import RecordedTests

        directory = config.getoption("--tensortrail-directory")
        config.pluginmanager.register(RecordedTests(directory, check), "tensortrail-recording")
