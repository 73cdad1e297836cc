"""The same code on fewer lines, or on more."""

from __future__ import annotations

import ast
import io
import tokenize

from tensortrail.testing.paraphrases.rewriting import Rewritten, as_unparsed, blocks

_OPENING, _CLOSING = "([{", ")]}"


def _on_one_line(source: str) -> Rewritten | None:
    """Simple statements of one block side by side, separated by `;`."""
    source = as_unparsed(source) + "\n"
    tree = ast.parse(source)
    lines = source.splitlines()
    for block in blocks(tree):
        for one, other in zip(reversed(block[:-1]), reversed(block[1:]), strict=True):
            if _is_plain(one) and _is_plain(other):
                text = lines[other.lineno - 1].strip()
                lines[one.lineno - 1] += f"; {text}"
                lines[other.lineno - 1] = ""
    return _joined(source, lines)


def _is_plain(statement: ast.stmt) -> bool:
    if not isinstance(statement, (ast.Assign, ast.Expr, ast.Return, ast.Delete, ast.Raise)):
        return False
    return statement.lineno == statement.end_lineno


def _after_the_colon(source: str) -> Rewritten | None:
    """`if c:` and its only statement on one line."""
    source = as_unparsed(source) + "\n"
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.If, ast.For, ast.With, ast.FunctionDef)) and len(node.body) == 1:
            only = node.body[0]
            if _is_plain(only) and only.lineno > 1 and lines[only.lineno - 2].endswith(":"):
                lines[only.lineno - 2] += f" {lines[only.lineno - 1].strip()}"
                lines[only.lineno - 1] = ""
    return _joined(source, lines)


def _on_many_lines(source: str) -> Rewritten | None:
    """A line break after every bracket that opens and every comma in brackets."""
    depth, parts, last = 0, [], (1, 0)
    lines = source.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.OP:
            continue
        if token.string in _OPENING:
            depth += 1
        elif token.string in _CLOSING:
            depth -= 1
        if token.string in _OPENING or (token.string == "," and depth):
            parts += [_between(lines, last, token.end), "\n        "]
            last = token.end
    parts.append(_between(lines, last, (len(lines) + 1, 0)))
    return _checked(source, "".join(parts))


def _joined(source: str, lines: list[str]) -> Rewritten | None:
    if lines == source.splitlines():
        return None
    return _checked(source, "\n".join(line for line in lines if line.strip()) + "\n")


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    (first, left), (final, right) = start, end
    if first == final:
        return lines[first - 1][left:right]
    middle = "".join(lines[first : final - 1])
    head = lines[first - 1][left:] if first <= len(lines) else ""
    return head + middle + (lines[final - 1][:right] if final <= len(lines) else "")


def _checked(before: str, after: str) -> Rewritten | None:
    if after == before:
        return None
    try:
        same = ast.dump(ast.parse(after)) == ast.dump(ast.parse(before))
    except SyntaxError:
        return None
    return Rewritten(after) if same else None


REWRITES = {
    "one line": _on_one_line,
    "after the colon": _after_the_colon,
    "many lines": _on_many_lines,
}
