"""Members of a batch of transformers that are moved and stored as attributes, beside its data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import called_here, matched
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, is_before, is_name, keyword, receiver
from tensortrail.rules.view import FunctionNode, Module


def set_beside(module: Module) -> Iterator[tuple[ast.Assign, ast.Name, ast.AST]]:
    """`inputs.input_ids = inputs.input_ids.to(device)` of what a processor or tokenizer gave, with
    the batch, and where `**inputs` passes it on as it came."""
    for assign in module.nodes(ast.Assign):
        match assign.targets[0], assign.value:
            case ast.Attribute(value=ast.Name() as batch) as member, ast.Call() as move:
                old = receiver(move) if called(move) in TO_DEVICE else None
                if old is None or module.text(old) != module.text(member):
                    continue
                function = module.function_of(assign)
                if _is_batch(module, batch) and not _is_changed(module, function, batch.id):
                    use = next(_unpacked(module, function, batch.id, assign), None)
                    if use is not None:
                        yield assign, batch, use


def _is_batch(module: Module, batch: ast.Name) -> bool:
    """A call with `return_tensors` gave it."""
    made = module.value_of(batch).origins
    return bool(made) and all(
        isinstance(each, ast.Call) and keyword(each, "return_tensors") is not None for each in made
    )


def _is_changed(module: Module, function: FunctionNode | None, name: str) -> bool:
    """`inputs = inputs.to(d)`, `inputs["mask"] = m`, `inputs.data = new`, `inputs.update(new)`."""
    parts: list[ast.Subscript | ast.Attribute] = [*module.nodes(ast.Subscript, function)]
    parts += module.members("data", function)
    calls = (receiver(each) for each in module.calls("to", "update", inside=function))
    names = [each for each in module.uses(name, function) if isinstance(each.ctx, ast.Store)]
    return (
        len(names) > 1
        or any(is_name(e.value, name) and isinstance(e.ctx, ast.Store) for e in parts)
        or any(each is not None and is_name(each, name) for each in calls)
    )


def _unpacked(
    module: Module, function: FunctionNode | None, name: str, after: ast.Assign
) -> Iterator[ast.AST]:
    """`model.generate(**inputs)`, also in a function of the file that it is passed to."""
    for use in module.uses(name, function):
        above = module.parent(use)
        if not is_before(after, use):
            continue
        if isinstance(above, ast.keyword) and above.arg is None:
            yield use
        elif isinstance(above, ast.Call):
            callee = called_here(module, above)
            passed = matched(callee, above) if callee is not None else ()
            taken = next((parameter for parameter, each in passed if each is use), "")
            unpacks = (
                each
                for each in module.nodes(ast.keyword, callee)
                if each.arg is None and is_name(each.value, taken)
            )
            yield from unpacks if taken else ()
