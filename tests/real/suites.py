"""Test suites of other projects, run by pytest in a process of their own.

The tests of a project come from a git repository `$TENSORTRAIL_SUITES/<project>`, at the tag of the
installed release where there is one, else from the source release on the package index. Without
either they are those of the repository's newest commit, and its package is used with them."""

from __future__ import annotations

import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.real.releases import CACHE, release

HELPERS = "helpers of suites 1.0"
"""What these tests import and no user of the projects needs."""


class NotHere(Exception):
    """The tests of a project cannot be had. The message says why."""


@dataclass(frozen=True)
class Suite:
    project: str
    files: tuple[str, ...]
    """Which are run."""
    folders: tuple[str, ...] = ("tests",)
    """What they need of the project."""
    tag: str = "v{}"
    version: str = ""
    """Of a project that is not installed: it comes with the helpers."""
    source: str = ""
    """The folder with the package, to be used with the tests of the newest commit."""
    inside: str = "."
    """The folder that pytest is started in; files are relative to it."""
    needs: tuple[str, ...] = (HELPERS,)
    """Entries of `PINNED`."""
    options: tuple[str, ...] = ()
    """Of pytest."""
    added: Path | None = None
    """A folder with what the source release leaves out of its first folder."""


class Tests(NamedTuple):
    """Of one state of a project, unpacked."""

    folder: Path
    state: str
    """A version, or a commit."""
    source: Path | None = None
    """The package of this state, if it is not the installed one."""


SUITES = {
    suite.project: suite
    for suite in (
        Suite(
            "accelerate",
            files=("tests/test_hooks.py", "tests/test_modeling_utils.py", "tests/test_offload.py",
                   "tests/test_optimizer.py", "tests/test_scheduler.py"),
        ),
        Suite(
            "compressed-tensors",
            files=("tests/test_quantization/test_quant_args.py",
                   "tests/test_quantization/test_quant_config.py",
                   "tests/test_quantization/test_configs"),
            tag="{}",
            version="0.18.0",
        ),
        Suite(
            "safetensors",
            files=("tests/test_pt_comparison.py", "tests/test_pt_model.py"),
            folders=("bindings/python",),
            inside="bindings/python",
        ),
    )
}  # fmt: skip
"""Which run on a CPU in a minute or two."""


class Outcome(NamedTuple):
    word: str
    """passed, failed, error or skipped."""
    message: str = ""


def version_of(suite: Suite) -> str:
    return suite.version or importlib.metadata.version(suite.project)


def tests_of(suite: Suite) -> Tests:
    repository = Path(os.environ.get("TENSORTRAIL_SUITES", ".")) / suite.project
    known = "TENSORTRAIL_SUITES" in os.environ and repository.exists()
    tag = suite.tag.format(version_of(suite))
    if known and _git(repository, "tag", "--list", tag).strip():
        return _of_commit(suite, repository, tag)
    try:
        return _of_release(suite)
    except NotHere:
        if not known:
            raise
        return _of_commit(suite, repository, "HEAD")


def _of_commit(suite: Suite, repository: Path, revision: str) -> Tests:
    commit = _git(repository, "rev-parse", f"{revision}^{{commit}}").decode().strip()
    target = _cache() / f"{suite.project}-{commit[:12]}"
    newest = revision == "HEAD"
    folders = [*suite.folders, *([suite.source] if newest and suite.source else [])]
    for folder in folders:
        if not (target / folder).is_dir():
            _unpack(_git(repository, "archive", f"{commit}:{folder}"), target / folder)
    # The package lies beside its tests' folder, or in one called src.
    source = target / suite.source if suite.source == "src" else target
    return Tests(
        target, commit[:12] if newest else _without_v(revision), source if newest else None
    )


def _without_v(tag: str) -> str:
    return tag.removeprefix("v")


def _git(repository: Path, *command: str) -> bytes:
    done = subprocess.run(["git", "-C", str(repository), *command], capture_output=True, check=True)
    return done.stdout


def _of_release(suite: Suite) -> Tests:
    target = _cache() / f"{suite.project}-{version_of(suite)}"
    if not target.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            asked = f"{suite.project}=={version_of(suite)}"
            done = subprocess.run(
                [*command, "--no-binary", suite.project, "-d", folder, asked], capture_output=True
            )
            archives = list(Path(folder).glob("*.tar.gz"))
            if done.returncode or not archives:
                raise NotHere(f"no source release of {asked} can be downloaded")
            _unpack(archives[0].read_bytes(), target, strip=True)
            shutil.rmtree(target / "src", ignore_errors=True)  # it is installed
            for each in suite.folders:
                _as_package(target / each)
    if suite.added:
        shutil.copytree(suite.added, target / suite.folders[0], dirs_exist_ok=True)
    if not all((target / suite.inside / each.partition("::")[0]).exists() for each in suite.files):
        raise NotHere(
            f"the source release of {suite.project} {version_of(suite)} has no tests: set "
            f"TENSORTRAIL_SUITES to a folder with its repository in {suite.project}/"
        )
    return Tests(target, version_of(suite))


def _as_package(folder: Path) -> None:
    """Releases leave the empty `__init__.py` out, and relative imports need it."""
    if any(b"\nfrom ." in each.read_bytes() for each in folder.glob("*.py")):
        (folder / "__init__.py").touch()


def _cache() -> Path:
    folder = CACHE / "tensortrail-tests" / "suites"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _unpack(archive: bytes, target: Path, strip: bool = False) -> None:
    with (
        tempfile.TemporaryDirectory(dir=_cache()) as folder,
        tarfile.open(fileobj=io.BytesIO(archive)) as tar,
    ):
        tar.extractall(folder, filter=_inside)
        whole = next(Path(folder).iterdir()) if strip else Path(folder)
        whole.chmod(0o755)
        target.mkdir(parents=True)
        for each in whole.iterdir():
            each.rename(target / each.name)


def _inside(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
    """Links to what was not unpacked are left out."""
    try:
        return tarfile.data_filter(member, folder)
    except tarfile.LinkOutsideDestinationError:
        return None


def run(suite: Suite, tests: Tests, *options: str, timeout: float = 1800) -> dict[str, Outcome]:
    """How each test ended."""
    paths = [*([tests.source] if tests.source else []), *map(release, suite.needs)]
    known = os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2",
        "PYTHONPATH": os.pathsep.join([*map(str, paths), *([known] if known else [])]),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as written:
        result = Path(written) / "result.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
        command += ["-o", "junit_family=xunit1", f"--junitxml={result}", *suite.options, *options]
        done = subprocess.run(
            [*command, *suite.files], cwd=tests.folder / suite.inside, env=environment,
            capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        if not result.is_file():
            said = (done.stdout + done.stderr)[-2000:]
            raise RuntimeError(f"pytest ended with {done.returncode}: {said}")
        return dict(map(_read, ET.parse(result).iter("testcase")))


def _read(case: ET.Element) -> tuple[str, Outcome]:
    name = (
        f"{case.get('file') or case.get('classname')}::{case.get('classname')}::{case.get('name')}"
    )
    for word, tag in (("failed", "failure"), ("error", "error"), ("skipped", "skipped")):
        if (found := case.find(tag)) is not None:
            return name, Outcome(word, found.get("message") or "")
    return name, Outcome("passed")
