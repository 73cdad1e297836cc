"""The loaders that a file makes, whose batches lie on the CPU."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules.devices.shared.named.devices_named import names_device
from tensortrail.rules.shared.assignments import pairs_of
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.objects import called, calls_in, keyword
from tensortrail.rules.view import Module

_LOADER = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_THROUGH = ("enumerate", "tqdm", "trange", "islice", "track")
_GIVE_TENSORS = (
    "torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset",
    "torchvision.datasets.",
)  # fmt: skip


def loader_on_cpu(module: Module, over: ast.expr) -> ast.Call | None:
    """The `DataLoader` of this file that is gone through, if its batches lie on the CPU."""
    while isinstance(over, ast.Call) and called(over) in _THROUGH and over.args:
        over = over.args[0]
    origins: Sequence[ast.expr] = (over,)
    if isinstance(over, (ast.Name, ast.Attribute)):
        origins = module.value_of(over).origins
    if isinstance(over, ast.Name) and not origins:
        origins = _of_the_file(module, over)
    if len(origins) != 1 or not isinstance(origins[0], ast.Call):
        return None
    made = origins[0]
    if module.qualified(made.func) not in _LOADER or keyword(made, "collate_fn") is not None:
        return None
    data = module.argument(made, 0, "dataset")
    return None if data is None or _names_a_device(module, data) else made


def is_global(module: Module, name: ast.Name) -> bool:
    """It is read in a function that does not bind it."""
    function = module.function_of(name)
    if function is None or name.id in parameter_names(function):
        return False
    return all(isinstance(each.ctx, ast.Load) for each in module.uses(name.id, function))


def _of_the_file(module: Module, name: ast.Name) -> tuple[ast.expr, ...]:
    """What the file gives a name that a function only reads."""
    if not is_global(module, name):
        return ()
    return tuple(
        value
        for assign in module.nodes(ast.Assign)
        if module.function_of(assign) is None
        for target, value in pairs_of(assign)
        if isinstance(target, ast.Name) and target.id == name.id
    )


def _names_a_device(module: Module, data: ast.expr) -> bool:
    """What the dataset is made of, or its class, names a device."""
    said: list[ast.AST] = [data]
    for node in [data, *module.nodes(ast.Name, data)]:
        origins = module.value_of(node).origins if isinstance(node, ast.Name) else ()
        for origin in origins:
            said.append(origin)
            said += [e for n in module.nodes(ast.Name, origin) for e in module.value_of(n).origins]
    made = {called(call) for each in said for call in calls_in(module, each)}
    classes = [each for each in module.nodes(ast.ClassDef) if each.name in made]
    return any(names_device(module, each) for each in (*said, *classes))


def gives_tensors(module: Module, data: ast.expr) -> bool:
    """A dataset of tensors, or of pictures as torchvision gives them."""
    for said in (data, *module.value_of(data).origins):
        made = (module.qualified(each.func) for each in calls_in(module, said))
        if any(each.startswith(_GIVE_TENSORS) for each in made):
            return True
    return False
