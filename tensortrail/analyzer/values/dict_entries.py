"""A dict display that gets other values: only the entries that differ are written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst


def with_entries(
    given: libcst.BaseExpression, wanted: libcst.BaseExpression
) -> libcst.BaseExpression:
    """The display as it stands, with the values of the wanted one; the wanted one if their keys
    differ."""
    import libcst

    if not (isinstance(given, libcst.Dict) and isinstance(wanted, libcst.Dict)):
        return wanted
    values = _by_key(wanted)
    if values is None or _by_key(given) is None or values.keys() != (_by_key(given) or {}).keys():
        return wanted
    elements = [_renewed(each, values) for each in given.elements]
    return given.with_changes(elements=elements)


def _by_key(display: libcst.Dict) -> dict[object, libcst.BaseExpression] | None:
    """The values by their keys; None if a key is more than a constant."""
    import libcst

    found: dict[object, libcst.BaseExpression] = {}
    for each in display.elements:
        if not isinstance(each, libcst.DictElement) or not isinstance(
            each.key, (libcst.SimpleString, libcst.Integer)
        ):
            return None
        found[each.key.evaluated_value] = each.value
    return found


def _renewed(
    element: libcst.BaseDictElement, values: dict[object, libcst.BaseExpression]
) -> libcst.BaseDictElement:
    import libcst

    assert isinstance(element, libcst.DictElement)
    assert isinstance(element.key, (libcst.SimpleString, libcst.Integer))
    new = values[element.key.evaluated_value]
    return element if _same_place(element.value, new) else element.with_changes(value=new)


def _same_place(old: libcst.BaseExpression, new: libcst.BaseExpression) -> bool:
    """The same value; a number names a GPU, as `0` does `cuda:0`."""
    import libcst

    if old.deep_equals(new):
        return True
    shown = [
        each.evaluated_value if isinstance(each, (libcst.SimpleString, libcst.Integer)) else each
        for each in (old, new)
    ]
    first, second = (f"cuda:{each}" if isinstance(each, int) else each for each in shown)
    return isinstance(first, str) and first == second
