"""What `--fix`, `--diff` and `--add-ignores` do to the files of a check."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby

from tensortrail.analyzer.choosing.request import CheckRequest, CheckResult, digest_of
from tensortrail.analyzer.fixing.fixer import Fixed, compiles, fix_file
from tensortrail.analyzer.fixing.previews import unified_diff
from tensortrail.analyzer.judging.engine import Checker
from tensortrail.analyzer.reading.python_files import fits, python_of, with_python
from tensortrail.analyzer.reading.source import Unreadable
from tensortrail.files import read, write
from tensortrail.findings import Finding
from tensortrail.plurals import counted


@dataclass
class Outcome:
    left: tuple[Finding, ...] = ()
    count: int = 0
    diff: str = ""
    messages: list[str] = field(default_factory=list)
    stdin: bytes = b""


def fix_buffer(request: CheckRequest, findings: Sequence[Finding], unsafe: bool) -> Outcome:
    assert request.stdin is not None
    name, data = request.stdin
    try:
        program = python_of(name, data)
    except Unreadable:  # which is among the findings
        return Outcome(left=tuple(findings), stdin=data)
    done = fix_file(name, program, findings, unsafe, Checker(request))
    after = with_python(name, data, done.after)
    return _added(Outcome(left=done.left, stdin=after), done, data, after)


def fix(
    request: CheckRequest,
    result: CheckResult,
    findings: Sequence[Finding],
    unsafe: bool,
    write_files: bool,
) -> Outcome:
    """Fix file by file; one that cannot be written is reported, the others are still done."""
    work = _Fixing(result.digests, Checker(request), unsafe, write_files)
    for path, found in _by_file(findings):
        if not any(each.fixes for each in found):
            work.outcome.messages += _why_no_fix(path, result.digests)
            work.outcome.left += tuple(found)
            continue
        try:
            work.fix(path, found)
        except OSError as error:
            work.outcome.messages.append(f"{path}: not fixed: {error.strerror or error}")
            work.outcome.left += tuple(found)
    return work.outcome


@dataclass
class _Fixing:
    """The files that are fixed one after another."""

    digests: Mapping[str, str]
    find_again: Checker
    unsafe: bool
    write_files: bool
    outcome: Outcome = field(default_factory=Outcome)
    _after: dict[Hashable, bytes] = field(default_factory=dict)

    def fix(self, path: str, found: Sequence[Finding]) -> None:
        known = self._after.get(_identity(path))
        if known is not None:  # fixed under another name
            self.outcome.left += tuple(self.find_again(path, known))
            return
        data, program = _judged(path, self.digests)
        done = fix_file(path, program, found, self.unsafe, self.find_again)
        mended = _put_back(path, data, done, self.write_files)
        self._after[_identity(path)] = done.after
        self.outcome.left += done.left
        _added(self.outcome, done, data, mended)


def of_encoding(encoding: str) -> str:
    return f"the file is in {encoding}, and only UTF-8 is edited"


def _why_no_fix(path: str, digests: Mapping[str, str]) -> Iterator[str]:
    """Where none is offered for any finding, though some rule may have one."""
    from tensortrail.analyzer.reading.source import Source

    with suppress(OSError, Unreadable):
        source = Source(path, _judged(path, digests)[1])
        if not source.editable:
            yield f"{path}: no fix offered: {of_encoding(source.encoding)}"


def _put_back(path: str, data: bytes, done: Fixed, write_files: bool) -> bytes:
    """The bytes of the file with its Python fixed, which are written if that is wanted."""
    mended = with_python(path, data, done.after)
    if write_files and mended != data:
        write(path, mended, judged=data)
    return mended


def add_ignores(result: CheckResult, findings: Sequence[Finding]) -> tuple[list[str], bool]:
    """Put a suppression beside every finding; says what was done, and whether in every file."""
    from tensortrail.analyzer.choosing.own_findings import OWN
    from tensortrail.analyzer.fixing.edits import apply
    from tensortrail.analyzer.judging.suppress import added_ignores
    from tensortrail.analyzer.reading.source import Source

    messages: list[str] = []
    done: set[Hashable] = set()
    comments = 0
    for path, found in _by_file([each for each in findings if each.code not in OWN]):
        try:
            if _identity(path) in done:
                continue
            data, program = _judged(path, result.digests)
            source = Source(path, program)
            edits = added_ignores(source, found)
            if not source.editable:
                raise OSError(of_encoding(source.encoding))
            new = apply(program, edits)
            if not edits or not (fits(path, program) or compiles)(new):
                raise OSError("no comment fits there")
            write(path, with_python(path, data, new), judged=data)
            done.add(_identity(path))
            comments += len(edits)
        except OSError as error:
            messages.append(f"{path}: not changed: {error.strerror or error}")
    added = f"Added {counted(comments, 'suppression')} in {counted(len(done), 'file')}."
    return [*messages, added], not messages


def _by_file(findings: Sequence[Finding]) -> Iterator[tuple[str, list[Finding]]]:
    for path, group in groupby(findings, key=lambda each: each.site.file):
        yield path, list(group)


def _judged(path: str, digests: Mapping[str, str]) -> tuple[bytes, bytes]:
    """The bytes of the file and the Python in them, if they still are what was judged."""
    data = read(path)
    try:
        program = python_of(path, data)
    except Unreadable as error:
        raise OSError(str(error)) from error
    if path in digests and digests[path] != digest_of(program):
        raise OSError("it has changed since it was checked")
    return data, program


def _identity(path: str) -> Hashable:
    """The same for all names of a file: links, hard links, other spellings."""
    status = os.stat(path)
    return (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(path)


def _added(outcome: Outcome, done: Fixed, before: bytes, after: bytes) -> Outcome:
    outcome.count += done.applied
    outcome.messages += done.dropped
    outcome.diff += unified_diff(done.path, before, after) if done.applied else ""
    return outcome
