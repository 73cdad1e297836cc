"""Reading and writing files in folders that somebody else may have prepared."""

from __future__ import annotations

import errno
import os
import stat

LARGEST = 256_000_000
"""Bytes of a file that are read at most."""
_REPOSITORY = (".git", ".hg")
_SYSTEM = frozenset(("/dev", "/proc", "/run", "/usr", "/var"))
"""Links that lie here are the machine's, not a project's."""
_READING = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def here() -> str:
    """The folder that the program is in; "" where it was removed under it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def from_here(path: str) -> str:
    return os.path.relpath(path) if here() else path


def read(path: str, most: int = LARGEST) -> bytes:
    """The bytes of a regular file; anything else is refused before it can block or never end."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "something else")
        raise OSError(errno.EINVAL, f"it is {kind}, not a file")
    if status.st_size > most:
        raise OSError(errno.EFBIG, f"it is larger than {most // 1_000_000} MB")
    handle = os.open(path, _READING)
    try:
        return _all_of(handle, status.st_size + 1, most)
    finally:
        os.close(handle)


def _all_of(handle: int, expected: int, most: int) -> bytes:
    """Mostly one piece; without a buffer, which takes most of the time of a small file."""
    pieces: list[bytes] = []
    while sum(map(len, pieces)) < most and (piece := os.read(handle, expected)):
        pieces.append(piece)
    return b"".join(pieces)[:most]


def write(path: str, data: bytes, judged: bytes | None = None) -> None:
    """Replace the file in one step, so that nobody ever sees half of it.

    Links and hard links stay, owner, group and permissions too. A link that leads out of its
    project is refused, and so is a file that does not hold the bytes that were `judged`."""
    path = os.path.abspath(path)
    stay_inside(path)
    target = os.path.realpath(path)
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return replace(target, data)
    if not stat.S_ISREG(status.st_mode):
        with open(target, "wb") as stream:  # the terminal, say
            stream.write(data)
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "it is read-only")
    if judged is not None and read(target) != judged:
        raise OSError(errno.EBUSY, "it has changed since it was checked")
    if status.st_nlink > 1:
        return _overwrite(target, data)
    try:
        return replace(target, data, status)
    except PermissionError:  # another one's file: only its content may be ours
        return _overwrite(target, data)


def replace(target: str, data: bytes, like: os.stat_result | None = None) -> None:
    """Put a new file where the old one is, with owner and permissions of the old one."""
    temporary = os.path.join(os.path.dirname(target), f".tensortrail-{os.urandom(8).hex()}")
    try:
        with open(temporary, "xb", opener=_for_the_owner) as file:
            file.write(data)
        if like is None:
            os.chmod(temporary, 0o666 & ~_umask())
        else:
            _dress(temporary, target, like)
        os.replace(temporary, target)
    except BaseException:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def _for_the_owner(path: str, flags: int) -> int:
    """Written without `tempfile`, whose import takes as long as reading a cache."""
    return os.open(path, flags, 0o600)


def stay_inside(path: str) -> None:
    """Raises for a path that must not be written: a link on it leads out of its project."""
    if outside := leads_out(path):
        raise OSError(errno.EPERM, f"a link here leads out of the project, to {outside}")


def leads_out(path: str, project: str = os.curdir) -> str:
    """Where the path ends if a link on it leads out of the project it lies in, else "".

    A project is a repository, or `project`. A folder that is a link elsewhere is the user's own:
    a home that lies on another disk, say."""
    path = os.path.abspath(path)
    project = os.path.realpath(project)
    here, rest = os.path.splitdrive(path)
    here += os.sep
    parts = [part for part in rest.split(os.sep) if part]
    for number, part in enumerate(parts, 1):
        lies_in, here = here, os.path.join(here, part)
        if not os.path.islink(here):
            continue
        here = os.path.realpath(here)
        root = repository(lies_in)
        foreign = root or within(lies_in, project) or number == len(parts)
        if foreign and lies_in not in _SYSTEM and not within(here, root or lies_in):
            return os.path.realpath(path)
    return ""


def repository(folder: str) -> str:
    """The root of the repository that the folder lies in; "" if it lies in none."""
    while True:
        if any(os.path.lexists(os.path.join(folder, name)) for name in _REPOSITORY):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


def within(path: str, folder: str) -> bool:
    """Whether the path is the folder or lies below it; both without links."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _dress(temporary: str, target: str, like: os.stat_result) -> None:
    import shutil

    if hasattr(os, "chown") and (like.st_uid, like.st_gid) != _owner(temporary):
        os.chown(temporary, like.st_uid, like.st_gid)
    shutil.copystat(target, temporary)  # permissions and access lists, but the time is now
    os.utime(temporary)


def _owner(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_uid, status.st_gid


def _overwrite(target: str, data: bytes) -> None:
    """Other names and the owner of the file stay; the old content lies beside it meanwhile."""
    import tempfile

    before = read(target)
    handle, spare = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".tensortrail-old-")
    with os.fdopen(handle, "wb") as file:
        file.write(before)
    try:
        _fill(target, data)
    except BaseException:
        _fill(target, before)
        raise
    finally:
        os.unlink(spare)


def _fill(target: str, data: bytes) -> None:
    with open(target, "r+b") as file:
        file.write(data)
        file.truncate()


def _umask() -> int:
    """There is no way to read it but to set it."""
    umask = os.umask(0)
    os.umask(umask)
    return umask
