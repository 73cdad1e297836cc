"""Buffers with `persistent=False`: which a file has, and what computes them anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import called, is_false, keyword, name_of, receiver
from tensortrail.rules.shared.on_meta import class_emptied
from tensortrail.rules.shared.origins import behind

INTERNAL_DICTS = ("_non_persistent_buffers_set", "_parameters", "_buffers", "_modules")
_WRITES = ("add", "update", "discard", "remove", "pop", "clear", "setdefault")


def is_of_saved_ones(module: Module, call: ast.Call) -> bool:
    """Under `if name.startswith("stat_"):`, where the file registers none of that name with
    `persistent=False`."""
    for guard in module.guards_of(call):
        match guard.test:
            case ast.Call(func=ast.Attribute(attr="startswith"), args=[said]) if guard.holds:
                first = module.value_of(said).constant
                if isinstance(first, str):
                    return not any(each.startswith(first) for each in _unsaved(module))
    return False


def _unsaved(module: Module) -> Iterator[str]:
    """Names of the buffers that the file registers with `persistent=False`."""
    for call in module.calls("register_buffer"):
        if call.args and is_false(keyword(call, "persistent")):
            yield str(module.value_of(call.args[0]).constant)


def never_computed(module: Module, emptied: ast.Call) -> ast.Call | None:
    """The first buffer with `persistent=False` of what was made on meta, or of a part of it."""
    found = class_emptied(module, emptied)
    if found is None:
        return None
    for cls in _with_parts(module, found[0]):
        if any(computes_again([each.name]) for each in _methods(cls)):
            return None
        for call in module.calls("register_buffer", inside=cls):
            if is_false(keyword(call, "persistent")) and len(call.args) > 1:
                return call
    return None


def _with_parts(module: Module, whole: ast.ClassDef) -> list[ast.ClassDef]:
    """The class, and those of this file that it makes objects of."""
    named = {each.name: each for each in module.nodes(ast.ClassDef)}
    found = [whole]
    for cls in found:
        made = (named.get(called(each)) for each in module.nodes(ast.Call, cls))
        found += [each for each in dict.fromkeys(made) if each is not None and each not in found]
    return found


def _methods(cls: ast.ClassDef) -> list[ast.FunctionDef]:
    own = ("__init__", "reset_parameters")
    return [e for e in cls.body if isinstance(e, ast.FunctionDef) and e.name not in own[:1]]


def changes_in(module: Module) -> Iterator[tuple[ast.AST, ast.Name]]:
    """`x |= ...`, `x.update(...)`."""
    for change in module.nodes(ast.AugAssign):
        if isinstance(change.target, ast.Name):
            reads = [each for each in module.earlier(change, ast.Assign)
                     if module.text(each.targets[0]) == change.target.id]  # fmt: skip
            if reads and isinstance(reads[0].targets[0], ast.Name):
                yield change, reads[0].targets[0]
    for call in module.calls(*_WRITES):
        owner = receiver(call)
        if isinstance(owner, ast.Name):
            yield call, owner


def over_buffers(module: Module, call: ast.Call) -> ast.For | None:
    for up in module.ancestors(call):
        if isinstance(up, ast.For):
            over = module.text(up.iter)
            sources = [
                module.text(origin)
                for name in (up.iter, *module.nodes(ast.Name, up.iter))
                if isinstance(name, ast.Name)
                for origin in module.value_of(name).origins
            ]
            if any("named_buffers(" in each for each in (over, *sources)):
                return up
    return None


def set_as_saved(module: Module) -> Iterator[tuple[ast.Call, ast.Call]]:
    """`setattr(part, name, nn.Buffer(x))` with names that are not written out, in functions that
    do not ask which buffers are saved; and the call that makes the buffer."""
    for call in module.calls("setattr"):
        function = module.function_of(call)
        if len(call.args) != 3 or function is None or isinstance(call.args[1], ast.Constant):
            continue
        made = (_saved_buffer(module, each) for each in module.value_of(call.args[2]).origins)
        buffer = next((each for each in made if each is not None), None)
        if buffer is not None and "persistent" not in module.text(function):
            yield call, buffer


def _saved_buffer(module: Module, node: ast.AST) -> ast.Call | None:
    """`nn.Buffer(x)`, or a function of this file that returns nothing else."""
    if not isinstance(node, ast.Call):
        return None
    if module.qualified(node.func) == "torch.nn.Buffer":
        return node if len(node.args) == 1 and keyword(node, "persistent") is None else None
    name = node.func.id if isinstance(node.func, ast.Name) else None
    helper = next((e for e in module.nodes(ast.FunctionDef) if e.name == name), None)
    returns = module.nodes(ast.Return, helper) if helper else ()
    given = [behind(module, each.value) for each in returns if each.value is not None]
    plain = all(isinstance(e, ast.Call) and called(e) == "Buffer" for e in given)
    found = [_saved_buffer(module, each) for each in given if plain]
    return found[0] if found and None not in found else None


def sent_to_meta(module: Module, call: ast.Call, owner: str) -> ast.Call | None:
    for before in module.earlier(call, ast.Call):
        subject = receiver(before)
        if called(before) == "to" and subject is not None and name_of(module, subject) == owner:
            return before if module.placement_at(before).device == "meta" else None
    return None


def computes_again(names: list[str]) -> bool:
    words = ("init", "reset", "buffer", "restore", "reinit")
    return any(word in name for name in names for word in words)
