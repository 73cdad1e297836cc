"""Questions about one expression: which object it is, what a call is named, what it is given."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from tensortrail.rules.view import Module

_ALIASES = 4


def name_of(module: Module, node: ast.expr) -> str:
    """The access path of the object, plain aliases followed: `m` after `m = self.model` is
    "self.model"."""
    for _ in range(_ALIASES):
        if not isinstance(node, ast.Name):
            break
        origins = module.value_of(node).origins
        if len(origins) != 1 or not isinstance(origins[0], (ast.Name, ast.Attribute)):
            break
        node = origins[0]
    return ast.unparse(node)


def root_of(node: ast.expr) -> ast.expr:
    """`x` of `x.data[0].view(-1)`."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def is_one_of(node: ast.expr | None, names: Container[str]) -> bool:
    """A variable with one of these names."""
    return isinstance(node, ast.Name) and node.id in names


def is_variable_or_own(node: ast.expr) -> bool:
    """A variable or an attribute of `self`; what lies in a list may be replaced there."""
    return isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and is_self(node.value))


def is_self(node: ast.expr) -> bool:
    return is_name(node, "self")


def is_self_or_cls(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def last_name(node: ast.AST | None) -> str:
    """`save` of `torch.save` and of `save`; "" of what is neither."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def called(call: ast.Call) -> str:
    """The last name of what is called: "save" of `torch.save(...)`."""
    return last_name(call.func)


def is_of_torch(module: Module, call: ast.Call) -> bool:
    return module.qualified(call.func).startswith("torch.")


def resolved_name(module: Module, call: ast.Call) -> str:
    """The same, of a function under its own name: "save" after `from torch import save as keep`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return module.qualified(call.func).rpartition(".")[2]


def names_in(node: ast.AST) -> set[str]:
    """Of variables: "x" and "y" of `x[y.size(0)]`."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def attributes_in(node: ast.AST) -> Iterator[ast.Attribute]:
    """`self.weight.data`, and `self.weight` within it."""
    return (each for each in ast.walk(node) if isinstance(each, ast.Attribute))


def calls_in(module: Module, node: ast.AST) -> Sequence[ast.Call]:
    """The node itself, if it is a call, and those within it."""
    own = [node] if isinstance(node, ast.Call) else []
    return [*own, *module.nodes(ast.Call, node)]


def receiver(call: ast.Call) -> ast.expr | None:
    """`m` of `m.to("cpu")`."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def given(call: ast.Call) -> list[ast.expr]:
    """The arguments, but not what `**` unpacks."""
    return [*call.args, *(each.value for each in call.keywords if each.arg is not None)]


def all_given(call: ast.Call) -> list[ast.expr]:
    """The arguments, and what `**` unpacks."""
    return [*call.args, *(each.value for each in call.keywords)]


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_constant(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value


def is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def unpacks(call: ast.Call) -> bool:
    """`*args` or `**kwargs` may give what is not seen."""
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    return starred or any(each.arg is None for each in call.keywords)


def is_empty_literal(node: ast.expr) -> bool:
    """`[]` or `{}`."""
    match node:
        case ast.List(elts=[]) | ast.Dict(keys=[]):
            return True
    return False


def method_called(module: Module, call: ast.Call) -> str:
    """`package.Class.name` of a call of a method; "" if the class of its object is not known."""
    owner = receiver(call)
    cls = module.value_of(owner).cls if owner is not None else ""
    return f"{cls}.{called(call)}" if cls else ""


def is_called(module: Module, node: ast.AST) -> bool:
    """It is the function of a call: `x.size` of `x.size()`."""
    above = module.parent(node)
    return isinstance(above, ast.Call) and above.func is node


def is_text(statement: ast.stmt) -> bool:
    """A docstring, or `...`: nothing runs."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def is_before(one: ast.stmt | ast.expr, other: ast.stmt | ast.expr) -> bool:
    """In the file."""
    return (one.lineno, one.col_offset) < (other.lineno, other.col_offset)


def is_called_on(call: ast.Call, name: str) -> bool:
    """`name.method()`."""
    owner = receiver(call)
    return owner is not None and is_name(owner, name)


def loop_around(module: Module, node: ast.AST) -> ast.For | ast.While | None:
    """The innermost one."""
    return next((e for e in module.ancestors(node) if isinstance(e, (ast.For, ast.While))), None)


def within(node: ast.AST, around: ast.AST, module: Module) -> bool:
    return node is around or any(up is around for up in module.ancestors(node))


def file_around(module: Module, node: ast.AST) -> ast.AST:
    """The file that the node stands in; it may be what runs when the file itself does."""
    return [node, *module.ancestors(node)][-1]


def position(node: ast.AST) -> tuple[int, int]:
    """Where it begins in the file."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
