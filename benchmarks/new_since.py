"""What `check --new-since` would have said of the last commits of a project, one after another.

python benchmarks/new_since.py REPOSITORY PATH [--commits 100]

REPOSITORY may be bare; PATH is the code in it. Of each commit that changes files below the path,
the findings that it brought are printed, and at the end how many commits brought any.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("path")
    parser.add_argument("--commits", type=int, default=100)
    options = parser.parse_args()
    count, severities, telling = 0, Counter[str](), 0
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git(options.repository, "worktree", "add", "-q", "--detach", str(tree), "HEAD")
        try:
            for commit in commits(options.repository, options.path, options.commits):
                found = brought(tree, commit, options.path)
                count, telling = count + 1, telling + bool(found)
                severities.update(each["severity"] for each in found)
                tell(options.repository, commit, found)
        finally:
            git(options.repository, "worktree", "remove", "--force", str(tree))
    listed = ", ".join(f"{n} {severity}s" for severity, n in severities.items()) or "none"
    print(f"{telling} of {count} commits brought findings: {listed}")


def commits(repository: Path, path: str, most: int) -> list[str]:
    """The oldest first; of merges what they brought to the branch."""
    options = ("--first-parent", "--min-parents=1", "--format=%H", f"-{most}", "HEAD")
    return git(repository, "log", *options, "--", path).split()[::-1]


def brought(tree: Path, commit: str, path: str) -> list[dict[str, Any]]:
    git(tree, "checkout", "-q", commit)
    if not (tree / path).exists():
        return []
    options = ("--isolated", "--no-cache", "--no-siblings", "--output-format", "json")
    command = [sys.executable, "-m", "tensortrail", "check", path, f"--new-since={commit}~1"]
    done = subprocess.run([*command, *options], cwd=tree, capture_output=True, text=True)
    if done.returncode > 1:
        raise SystemExit(done.stderr)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def tell(repository: Path, commit: str, found: list[dict[str, Any]]) -> None:
    if found:
        print(git(repository, "log", "-1", "--format=%h %cs %s", commit).strip(), flush=True)
    for each in found:
        at = each["location"]
        place = f"{at['file']}:{at['line']}"
        print(f"  {each['severity']} {each['code']} {place} {each['message']}", flush=True)


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
