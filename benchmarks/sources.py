"""Brings public code at a revision onto this machine, to run the lint on. Nothing of it is kept."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

HOST = "https://github.com"
_TEXTS = frozenset({".py", ".pyi", ".toml", ".cfg", ".md", ".rst", ".txt", ".ipynb", ".sh"})
_INSTALLED_BY = ("setup.py", "setup.cfg", "pyproject.toml")


class NotAvailable(OSError):
    """A repository that is neither in the folder of mirrors nor can be cloned."""


class Sources:
    """Repositories from `mirrors` (bare, as owner+name/repo), or cloned without such a folder."""

    def __init__(self, work: Path, mirrors: Path | None = None, whole: bool = False) -> None:
        self._work = work
        self._whole = whole
        self._mirrors = mirrors
        self._refused: set[str] = set()
        work.mkdir(parents=True, exist_ok=True)

    def package_at(self, repository: str, revision: str, path: str) -> Path:
        """A folder with the top folder of `path` at the revision, so that imports resolve, and with
        what makes it a library: of a script at the top with all that lies beside it. `whole`: with
        all texts of the repository, as who works on it has them."""
        if self._whole:
            return self._all_texts(repository, revision)
        parts = path.split("/")
        top = "/".join(parts[:2]) if parts[0] in ("src", "py", "bindings") else parts[0]
        target = self._work / f"{repository.replace('/', '+')}@{revision[:12]}" / top.split("/")[0]
        if not target.exists():
            git = self._repository(repository)
            sources = "*.py" if top.endswith(".py") else f"{top}/*.py"
            installed = _said_to_be_installed(git, revision)
            command = ["git", "-C", str(git), "archive", revision, "--", sources, *installed]
            archive = subprocess.run(command, capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(target.parent, filter="data")
        return target.parent

    def _all_texts(self, repository: str, revision: str) -> Path:
        target = self._work / f"{repository.replace('/', '+')}@{revision[:12]}-whole"
        if not target.exists():
            git = self._repository(repository)
            command = ["git", "-C", str(git), "archive", revision, "--", *_texts(git, revision)]
            archive = subprocess.run(command, capture_output=True, check=True).stdout
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                tar.extractall(target, filter="data")
        return target

    def wheel(self, requirement: str) -> Path:
        """The Python files of a wheel."""
        target = self._work / requirement.replace("==", "-")
        if not target.exists():
            folder = self._work / "wheels"
            command = ["pip", "download", "--quiet", "--no-deps", "-d", str(folder), requirement]
            subprocess.run(command, check=True)
            name, version = requirement.split("==")
            wheel = next(folder.glob(f"{name.replace('-', '_')}-{version}*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                python = [each for each in archive.namelist() if each.endswith(".py")]
                archive.extractall(target, python)
        return target

    def _repository(self, repository: str) -> Path:
        name = repository.replace("/", "+")
        if self._mirrors is not None:
            if not (self._mirrors / name / "repo").exists():
                raise NotAvailable(f"{repository} is not in {self._mirrors}")
            return self._mirrors / name / "repo"
        return self._cloned(repository, self._work / "git" / name)

    def _cloned(self, repository: str, target: Path) -> Path:
        """The repository, asked for once: a host that refused is not asked again for each case."""
        if repository in self._refused:
            raise NotAvailable(f"{repository} cannot be cloned")
        if not target.exists():
            command = ["git", "clone", "--quiet", "--bare", f"{HOST}/{repository}", str(target)]
            try:
                subprocess.run(command, check=True)
            except subprocess.CalledProcessError as error:
                self._refused.add(repository)
                raise NotAvailable(f"{repository} cannot be cloned") from error
        return target


def _texts(git: Path, revision: str) -> list[str]:
    """A pattern for each ending of texts that there is: git refuses those that match nothing."""
    command = ["git", "-C", str(git), "ls-tree", "-r", "--name-only", revision]
    listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    found = {Path(each).suffix for each in listed.splitlines()} & _TEXTS
    return [f"*{each}" for each in sorted(found)]


def _said_to_be_installed(git: Path, revision: str) -> list[str]:
    """The files at the top that make a library of it: without them, what no program of its own
    comes to would count as unused."""
    command = ["git", "-C", str(git), "ls-tree", "--name-only", revision, "--", *_INSTALLED_BY]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.split()
