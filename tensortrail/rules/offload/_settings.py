"""How a setting known somewhere in a class can be read at another place of it."""

from __future__ import annotations

import ast

from tensortrail.rules import Module


def readable_at(module: Module, call: ast.Call, subject: ast.expr, expression: str) -> str:
    """The expression as it can be read at the call; "" if it cannot."""
    root, _, rest = expression.partition(".")
    function = module.function_of(call)
    if function is None:
        return ""
    bound = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    bound |= {each.id for each in module.nodes(ast.Name, function)}
    if root in bound:
        return expression
    # another name for self: `module.model`, where `model` is a field of this class
    cls = module.class_of(call)
    facts = module.class_facts(cls) if cls is not None else None
    if root == "self" and rest and facts is not None and isinstance(subject, ast.Attribute):
        owner = subject.value
        if isinstance(owner, ast.Name) and subject.attr in facts.fields:
            return f"{owner.id}.{rest}"
    return ""
