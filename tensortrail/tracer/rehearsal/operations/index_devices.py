"""What operations with indices or masks say of operands that lie on different devices."""

from __future__ import annotations

from collections.abc import Sequence

from tensortrail.tracer.rehearsal.operations.refusals import Arguments, Place, two_devices

ADDED = (None, None, None, True)
"""Arguments of `index_put` that adds."""
PUTS = ("index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put")
"""Operations that write where indices say."""


def index(places: Sequence[Place], _: Arguments) -> None:
    home = places[0][2]
    if any(place not in ("cpu", home) for _, _, place in places[1:]):
        raise RuntimeError(
            f"indices should be either on cpu or on the same device as the indexed tensor ({home})"
        )


def put(places: Sequence[Place], args: Arguments) -> None:
    """Indices are moved to what they are for, wherever they lie."""
    home = places[0][2]
    for name, tensor, place in places[1:]:
        if place == home or name.startswith("indices") or not tensor.dim():
            continue
        if True in args[3:] and home != "cpu":  # what lies there is added to
            raise RuntimeError(f"expected device {home} but got device {place} for value tensor")
        two_devices(*((home, place) if home != "cpu" else (place, home)))


def index_by_mask(places: Sequence[Place], args: Arguments) -> None:
    """Made of an access by index, and of `masked_fill`."""
    index([each for each in places if each[0] != "mask"], args)
    masked_fill([each for each in places if each[0] in ("self", "mask")], args)


def put_by_mask(places: Sequence[Place], _: Arguments) -> None:
    """Made of `masked_fill` of the values, and of an addition by index."""
    masked_fill([places[-1], *(each for each in places if each[0] == "mask")], ())
    put([each for each in places if each[0] != "mask"], ADDED)


def masked_fill(places: Sequence[Place], _: Arguments) -> None:
    home, mask = places[0][2], places[1][2]
    if home == "cpu" and len(places) > 2:
        raise RuntimeError("masked_fill_: Expected inputs to be on same device")
    if mask != home:
        raise RuntimeError(
            "expected self and mask to be on the same device, but got mask on "
            f"{mask} and self on {home}"
        )
    if len(places) > 2 and places[2][2] not in (home, "cpu"):
        raise RuntimeError("masked_fill_: Expected inputs to be on same device")
