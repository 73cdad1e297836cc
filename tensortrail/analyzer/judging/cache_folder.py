"""Which folder may be the cache, and how it is begun."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tensortrail.files import leads_out, read

if TYPE_CHECKING:
    pass

FILE = "checked.json"
_TAG_FILE = "CACHEDIR.TAG"
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"


def refused(folder: str, root: str) -> str:
    """Why this folder cannot be the cache; "" if it can."""
    file = os.path.join(folder, FILE)
    if outside := leads_out(file, root):
        return f"{folder}: no cache is kept: a link here leads out of the project, to {outside}"
    if os.path.lexists(file) and (os.path.islink(file) or not os.path.isfile(file)):
        return f"{file}: no cache is kept: this is not a regular file"
    if not os.path.isdir(folder):
        return ""
    try:
        tagged = read(os.path.join(folder, _TAG_FILE), 10_000).startswith(_TAG.strip().encode())
    except OSError:
        tagged = False
    if not tagged and os.listdir(folder):
        return f"{folder}: no cache is kept: this is a folder of other files"
    return ""


def prepare(folder: str) -> None:
    if os.path.isdir(folder) and os.listdir(folder):
        return  # it is a cache: `refused` has looked
    os.makedirs(folder, exist_ok=True)
    begun: list[str] = []
    try:
        for name, text in ((".gitignore", "*\n"), (_TAG_FILE, _TAG)):
            with open(os.path.join(folder, name), "x", encoding="utf-8") as handle:
                begun.append(handle.name)
                handle.write(text)
    except OSError:  # a full disk: without its tag the folder would be refused from now on
        for each in begun:
            os.unlink(each)
        raise
