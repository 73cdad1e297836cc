"""A place in words."""

from __future__ import annotations

import os

from tensortrail.rules.places import (
    Place,
    Where,
)


def described(place: Place) -> str:
    """Where a tensor is, to follow "a tensor"."""
    if place.where in (Where.OF, Where.LOCAL):
        return f"on the device of `{place.subject}`"
    if place.where is Where.SELF:
        return "on the device of the module"
    if place.where is Where.LITERAL:
        return f"on {place.subject}"
    if place.where is Where.DEVICE:
        return f"on `{place.subject}`"
    return {
        Where.DEFAULT: "on the default device",
        Where.HOST: "on the CPU",
        Where.META: "on meta",
    }.get(place.where, "left where it was made")


def unless(elsewhere: tuple[str, int] | None) -> str:
    if elsewhere is None:
        return ""
    path, line = elsewhere
    return f"; right only in a program that runs line {line} of {os.path.basename(path)} before"
