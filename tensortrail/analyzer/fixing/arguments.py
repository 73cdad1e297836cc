"""Giving a call an argument, with libcst: nothing else of its text changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensortrail.analyzer.fixing.origins import Refused
from tensortrail.analyzer.values.dict_entries import with_entries

if TYPE_CHECKING:
    import libcst


def with_argument(text: str, name: str, value: str, position: int = -1) -> str:
    """The text of a call with this argument in it, replaced where it was given."""
    import libcst

    try:
        # The parentheses let it go over several lines; they change nothing else.
        module = libcst.parse_module(f"({text})")
        wanted = libcst.parse_expression(value)
    except libcst.ParserSyntaxError as error:
        raise Refused("it does not parse by itself") from error
    line = module.body[0]
    inner = line.body[0] if isinstance(line, libcst.SimpleStatementLine) else None
    call = inner.value if isinstance(inner, libcst.Expr) else None
    if not isinstance(call, libcst.Call) or module.code != f"({text})":
        raise Refused("its text is not that of a call")
    given = _given(call, name, position)
    if given is None:
        changed = call.with_changes(args=_added(call, name, wanted))
    elif given.value.deep_equals(wanted):
        return text
    else:
        changed = call.with_deep_changes(given, value=with_entries(given.value, wanted))
    return module.code_for_node(changed)[1:-1]


def _given(call: libcst.Call, name: str, position: int) -> libcst.Arg | None:
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg
    if 0 <= position < len(call.args):
        arg = call.args[position]
        return arg if arg.keyword is None and not arg.star else None
    return None


def _added(call: libcst.Call, name: str, value: libcst.BaseExpression) -> list[libcst.Arg]:
    """The arguments with one more, before what is unpacked and laid out like the others."""
    import libcst

    tight = libcst.AssignEqual(libcst.SimpleWhitespace(""), libcst.SimpleWhitespace(""))
    new = libcst.Arg(value, libcst.Name(name), tight)
    args = list(call.args)
    place = next((at for at, arg in enumerate(args) if arg.star == "**"), len(args))
    if place < len(args):
        before = args[place - 1].comma if place else None
        new = new.with_changes(comma=_separator(call, before))
        return [*args[:place], new, *args[place:]]
    if not args:
        return [new]
    last = args[-1]
    if isinstance(last.value, libcst.GeneratorExp) and not last.value.lpar:
        both = {"lpar": [libcst.LeftParen()], "rpar": [libcst.RightParen()]}
        last = last.with_changes(value=last.value.with_changes(**both))
    between = _separator(call, args[-2].comma if len(args) > 1 else None)
    if isinstance(last.comma, libcst.Comma):
        # What stands behind the last comma, such as a comment, belongs to the last argument.
        end = last.comma.whitespace_after
        new = new.with_changes(comma=libcst.Comma(whitespace_after=_bare(end)))
        last = last.with_changes(comma=between.with_changes(whitespace_after=_said(between, end)))
    else:
        end = last.whitespace_after_arg
        new = new.with_changes(whitespace_after_arg=_bare(end))
        after = between.with_changes(whitespace_after=_said(between, end))
        last = last.with_changes(whitespace_after_arg=libcst.SimpleWhitespace(""), comma=after)
    return [*args[:-1], last, new]


def _separator(call: libcst.Call, comma: object) -> libcst.Comma:
    """A comma as those between the other arguments, without their comments."""
    import libcst

    if isinstance(comma, libcst.Comma):
        return comma.with_changes(whitespace_after=_bare(comma.whitespace_after))
    opening = call.whitespace_before_args
    if isinstance(opening, libcst.ParenthesizedWhitespace):
        return libcst.Comma(whitespace_after=_bare(opening))
    return libcst.Comma(whitespace_after=libcst.SimpleWhitespace(" "))


def _bare(
    space: libcst.BaseParenthesizableWhitespace,
) -> libcst.BaseParenthesizableWhitespace:
    import libcst

    if not isinstance(space, libcst.ParenthesizedWhitespace):
        return space
    first = space.first_line.with_changes(comment=None, whitespace=libcst.SimpleWhitespace(""))
    return space.with_changes(first_line=first, empty_lines=[])


def _said(
    between: libcst.Comma, end: libcst.BaseParenthesizableWhitespace
) -> libcst.BaseParenthesizableWhitespace:
    """The space of a separator, with the comment that stood at the end."""
    import libcst

    space = between.whitespace_after
    if not isinstance(end, libcst.ParenthesizedWhitespace) or end.first_line.comment is None:
        return space
    if isinstance(space, libcst.ParenthesizedWhitespace):
        return space.with_changes(first_line=end.first_line)
    return end
