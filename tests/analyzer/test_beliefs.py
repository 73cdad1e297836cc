"""The layered map agrees with plain dicts, whatever is done to it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tensortrail.analyzer.values.beliefs import Beliefs

PATHS = ["a", "b", "a.x", "a.y", "a.x.z", "a[0]", "a[0].x", "ab", "ab.x", "b.x", "c"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["set", "forget", "copy", "join", "take"]),
        st.sampled_from(PATHS),
        st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=80,
)


def either(path: str, one: int | None, other: int | None) -> int | None:
    if one is not None and other is not None:
        return max(one, other)
    return (one or other) if "." not in path and "[" not in path else None


def forget(plain: dict[str, int], path: str) -> None:
    for key in [key for key in plain if key == path or key.startswith((path + ".", path + "["))]:
        del plain[key]


@settings(max_examples=300)
@given(STEPS)
def test_it_holds_what_plain_dicts_would(steps: list[tuple[str, str, int, int]]) -> None:
    """Four maps are written, copied onto each other and joined, beside four dicts."""
    maps: list[Beliefs[int]] = [Beliefs() for _ in range(4)]
    dicts: list[dict[str, int]] = [{} for _ in range(4)]
    for number, (step, path, at, other) in enumerate(steps, start=1):
        if step == "set":
            maps[at][path] = dicts[at][path] = number
        elif step == "forget":
            maps[at].forget(path)
            forget(dicts[at], path)
        elif step == "copy":
            maps[other] = maps[at].copy()
            dicts[other] = dict(dicts[at])
        elif step == "join":
            maps[at] = maps[at].joined(maps[other], either)
            keys = dicts[at].keys() | dicts[other].keys()
            joined = {key: either(key, dicts[at].get(key), dicts[other].get(key)) for key in keys}
            dicts[at] = {key: value for key, value in joined.items() if value is not None}
        else:
            for name in range(number % 40):
                maps[at][f"n{name}"] = dicts[at][f"n{name}"] = number
        for one, plain in zip(maps, dicts, strict=True):
            names = {*PATHS, *(f"n{name}" for name in range(40))}
            assert {name: one.get(name) for name in names if one.get(name) is not None} == plain
