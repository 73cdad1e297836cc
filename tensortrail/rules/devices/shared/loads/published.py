"""Files that a project publishes: their addresses stand in a table of its code."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensortrail.rules.shared.objects import called, given
from tensortrail.rules.view import Module

_FETCH = frozenset(
    {
        "urllib.request.urlretrieve",
        "urllib.request.urlopen",
        "requests.get",
        "torch.hub.load_state_dict_from_url",
        "torch.utils.model_zoo.load_url",
    }
)
"""Functions of libraries that download, and do not say so."""


def is_published(module: Module, behind: Iterable[ast.expr]) -> bool:
    """The name of the file comes out of such a table, or of a function that looks into one."""
    return any(_is_looked_up(module, each) or _is_found(module, each) for each in behind)


def _is_found(module: Module, node: ast.expr) -> bool:
    """`weights_of("small")`, where `weights_of` is a function of the project."""
    if not isinstance(node, ast.Call):
        return False
    name = module.qualified(node.func)
    if node.args and isinstance(node.args[0], ast.Constant) and module.about(name, fetches):
        return True
    return bool(module.about(name, looks_up))


def fetches(module: Module, node: ast.AST) -> bool:
    """It downloads something, whatever the address is made of."""
    calls = module.nodes(ast.Call, node)
    words = (called(each).lower().split("_") for each in calls)
    return any("download" in each for each in words) or any(
        module.qualified(each.func) in _FETCH for each in calls
    )


def looks_up(module: Module, node: ast.AST) -> bool:
    """In a table of addresses, or at one that is written there."""
    looked_up = (*module.nodes(ast.Subscript, node), *module.calls("get", inside=node))
    return any(_is_looked_up(module, each) for each in looked_up) or any(
        is_download(module, call) or any(map(_is_address, given(call)))
        for call in module.nodes(ast.Call, node)
    )


def is_download(module: Module, node: ast.expr) -> bool:
    """`snapshot_download("owner/name")`, `hub_download(repo_id="owner/" + name)`"""
    if not isinstance(node, ast.Call) or "download" not in called(node).lower().split("_"):
        return False
    said = [each.value for each in node.keywords if each.arg == "repo_id"] or node.args[:1]
    return any(_begins_with_text(module, each) for each in said)


def _begins_with_text(module: Module, node: ast.expr) -> bool:
    """Written out, or at least whose it is: `"owner/" + name`."""
    match node:
        case ast.Constant(value=str()):
            return True
        case ast.BinOp(left=left):
            return _begins_with_text(module, left)
        case ast.JoinedStr(values=[first, *_]):
            return _begins_with_text(module, first)
        case ast.Name():
            origins = module.value_of(node).origins
            return bool(origins) and all(_begins_with_text(module, each) for each in origins)
    return False


def _is_looked_up(module: Module, node: ast.expr) -> bool:
    """`URLS[name]`, `URLS.get(name)`"""
    match node:
        case ast.Subscript(value=table) | ast.Call(func=ast.Attribute(value=table, attr="get")):
            return any(map(_is_table, module.value_of(table).origins))
    return False


def _is_table(node: ast.expr) -> bool:
    return isinstance(node, ast.Dict) and any(map(_is_address, node.values))


def _is_address(node: ast.expr) -> bool:
    """`"https://..."`, `f"{SERVER}/small.pth"`"""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    texts = [str(each.value) for each in parts if isinstance(each, ast.Constant)]
    sign = "/" if isinstance(node, ast.JoinedStr) else "://"
    return any(sign in each for each in texts)
