"""Test suites of other projects, run by pytest in a process of their own.

The tests of a project come from a git repository `$TENSORTRAIL_SUITES/<project>`, at the tag of the
installed release where there is one, else from the source release on the package index."""

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.real.releases import CACHE, with_release

HELPERS = "helpers of suites 1.0"
"""What these tests import and no user of the projects needs."""


class NotHere(Exception):
    """The tests of a project cannot be had. The message says why."""


@dataclass(frozen=True)
class Suite:
    project: str
    files: tuple[str, ...]
    """Which run on a CPU in a minute or two."""
    for_gpus: tuple[str, ...] = ()
    """Which hold tests for GPUs."""
    folder: str = "tests"
    tag: str = "v{}"
    version: str = ""
    """Of a project that is not installed: it comes with the helpers."""


SUITES = {
    suite.project: suite
    for suite in (
        Suite(
            "accelerate",
            files=("tests/test_hooks.py", "tests/test_modeling_utils.py", "tests/test_offload.py",
                   "tests/test_optimizer.py", "tests/test_scheduler.py"),
            for_gpus=("tests/test_hooks.py", "tests/test_modeling_utils.py",
                      "tests/test_offload.py", "tests/test_big_modeling.py",
                      "tests/test_accelerator.py", "tests/test_utils.py",
                      "tests/test_memory_utils.py", "tests/test_kwargs_handlers.py"),
        ),
        Suite(
            "compressed-tensors",
            files=("tests/test_quantization/test_quant_args.py",
                   "tests/test_quantization/test_quant_config.py",
                   "tests/test_quantization/test_configs"),
            for_gpus=("tests/test_offload", "tests/test_compressors", "tests/test_quantization"),
            tag="{}",
            version="0.18.0",
        ),
        Suite("diffusers", files=(), for_gpus=("tests/hooks/test_group_offloading.py",)),
        Suite(
            "torchao",
            files=(),
            for_gpus=("test/quantization/test_quant_api.py",
                      "test/dtypes/test_affine_quantized_float.py"),
            folder="test",
        ),
    )
}  # fmt: skip


class Outcome(NamedTuple):
    word: str
    """passed, failed, error or skipped."""
    message: str = ""


def version_of(suite: Suite) -> str:
    return suite.version or importlib.metadata.version(suite.project)


def tests_of(suite: Suite) -> tuple[Path, str]:
    """A folder with the project's tests, and which state of the project they are of."""
    repositories = os.environ.get("TENSORTRAIL_SUITES", "")
    repository = Path(repositories) / suite.project
    if repositories and repository.is_dir():
        return _of_repository(suite, repository)
    return _of_release(suite), version_of(suite)


def _of_repository(suite: Suite, repository: Path) -> tuple[Path, str]:
    def git(*command: str) -> bytes:
        return subprocess.run(
            ["git", "-C", str(repository), *command], capture_output=True, check=True
        ).stdout

    tag = suite.tag.format(version_of(suite))
    known = git("tag", "--list", tag).strip()
    revision = git("rev-parse", f"{tag if known else 'HEAD'}^{{commit}}").decode().strip()
    target = _cache() / f"{suite.project}-{revision[:12]}"
    if not target.is_dir():
        _unpack(git("archive", revision, "--", suite.folder), target)
    return target, tag if known else revision[:12]


def _of_release(suite: Suite) -> Path:
    target = _cache() / f"{suite.project}-{version_of(suite)}"
    if not target.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            asked = f"{suite.project}=={version_of(suite)}"
            done = subprocess.run(
                [*command, "--no-binary", ":all:", "-d", folder, asked], capture_output=True
            )
            archives = list(Path(folder).glob("*.tar.gz"))
            if done.returncode or not archives:
                raise NotHere(f"no source release of {asked} can be downloaded")
            _unpack(archives[0].read_bytes(), target, strip=True)
            shutil.rmtree(target / "src", ignore_errors=True)  # it is installed
    if not (target / suite.folder).is_dir():
        raise NotHere(
            f"the source release of {suite.project} {version_of(suite)} has no tests: set "
            f"TENSORTRAIL_SUITES to a folder with its repository in {suite.project}/"
        )
    return target


def _cache() -> Path:
    folder = CACHE / "tensortrail-tests" / "suites"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _unpack(archive: bytes, target: Path, strip: bool = False) -> None:
    with (
        tempfile.TemporaryDirectory(dir=target.parent) as folder,
        tarfile.open(fileobj=io.BytesIO(archive)) as tar,
    ):
        tar.extractall(folder, filter="data")
        whole = next(Path(folder).iterdir()) if strip else Path(folder)
        whole.chmod(0o755)
        target.mkdir()
        for each in whole.iterdir():
            each.rename(target / each.name)


def run(
    folder: Path, files: Sequence[str], *options: str, timeout: float = 1800
) -> dict[str, Outcome]:
    """How each test ended."""
    environment = {**with_release(HELPERS), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2"}
    with tempfile.TemporaryDirectory() as written:
        result = Path(written) / "result.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
        done = subprocess.run(
            [*command, "-o", "junit_family=xunit1", f"--junitxml={result}", *options, *files],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        if not result.is_file():
            raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout[-2000:]}")
        return dict(map(_read, ET.parse(result).iter("testcase")))


def _read(case: ET.Element) -> tuple[str, Outcome]:
    name = (
        f"{case.get('file') or case.get('classname')}::{case.get('classname')}::{case.get('name')}"
    )
    for word, tag in (("failed", "failure"), ("error", "error"), ("skipped", "skipped")):
        if (found := case.find(tag)) is not None:
            return name, Outcome(word, found.get("message") or "")
    return name, Outcome("passed")
