"""`--changed-only [BASE]`: the files that git says were changed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from tensortrail.config import ConfigError

_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""What a repository's own configuration could start is switched off."""
_SECONDS = 60


def changed_files(base: str, folder: str) -> frozenset[str]:
    """Real paths of the files that differ from the commit, or are new and not ignored.

    Changes since a branch left BASE count, not what BASE has got since."""
    top = os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\n")
    listed = _differing(top, base)
    listed += _git(top, "ls-files", "--others", "--exclude-standard", "-z")
    names = [os.fsdecode(each) for each in listed.split(b"\0") if each]
    return frozenset(os.path.realpath(os.path.join(top, each)) for each in names)


def _differing(top: str, base: str) -> bytes:
    if base == "HEAD" and not _git(top, "rev-list", "-n", "1", "--all"):
        return _git(top, "ls-files", "--cached", "-z")  # there is no commit yet
    since = _since(top, base)
    return _git(
        top, "diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", "--diff-filter=d", since
    )


def _since(top: str, base: str) -> str:
    commit = _commit(top, base)
    try:
        return _git(top, "merge-base", commit, "HEAD").decode().strip()
    except ConfigError as error:
        raise ConfigError(
            f"--changed-only {base}: git finds no commit that it shares with HEAD: "
            "fetch more of the history (actions/checkout: fetch-depth: 0)"
        ) from error


def _commit(top: str, base: str) -> str:
    try:
        named = f"{base}^{{commit}}"
        return _git(top, "rev-parse", "--verify", "--end-of-options", named).decode().strip()
    except ConfigError as error:
        hint = ""
        if os.path.exists(base):
            hint = f": for the changed files of a path, write {base} --changed-only"
        raise ConfigError(f"--changed-only {base}: git knows no such commit{hint}") from error


def _git(folder: str, *arguments: str) -> bytes:
    command: Sequence[str] = ("git", *_HARMLESS, "-C", folder or ".", *arguments)
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, env=quiet, capture_output=True, stdin=subprocess.DEVNULL, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"--changed-only needs git: {error}") from error
    if done.returncode:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ConfigError(f"--changed-only: git: {told[-1] if told else done.returncode}")
    return done.stdout
