"""Parameters that a class ties with an assignment, and methods that replace one of the two."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.shared.objects import called, is_before, receiver
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode, Module


@unchanging(frozen=True, slots=False)
class Untied:
    """A module, or a parameter of it, that takes the place of a tied one."""

    node: ast.Assign
    replaced: str
    other: str
    """The parameter that still is the old one: "self.head.weight"."""
    tie: ast.Assign


def replaced_in_class(module: Module, cls: ast.ClassDef) -> Iterator[Untied]:
    assigns = module.nodes(ast.Assign, cls)
    ties = [each for each in assigns if is_tie(module, each)]
    tying = {module.function_of(each) for each in ties}
    parted = {stored: (tie, other) for tie in ties for stored, other in _parted(module, tie)}
    for assign in assigns if parted else ():
        function, stored = module.function_of(assign), module.text(assign.targets[0])
        if stored not in parted or function is None:
            continue
        tie, other = parted[stored]
        if _comes_after(module, tie, assign, ties):
            yield Untied(assign, stored, other, tie)
        if function.name == "__init__":
            continue
        if function not in tying and not _ties_again(module, function, tie):
            yield Untied(assign, stored, other, tie)


def _comes_after(
    module: Module, tie: ast.Assign, assign: ast.Assign, ties: Sequence[ast.Assign]
) -> bool:
    """In the function that ties, after the tie, and nothing ties again behind it."""
    function = module.function_of(assign)
    if module.function_of(tie) is not function or function is None or assign in ties:
        return False
    if not any(each is assign for each in module.later(tie, ast.Assign)):
        return False
    again = any(is_before(assign, each) for each in ties if module.function_of(each) is function)
    return not again and not any(
        "tie" in called(call) or called(call) == "post_init"
        for call in module.later(assign, ast.Call)
    )


def _parted(module: Module, tie: ast.Assign) -> Iterator[tuple[str, str]]:
    """What may be replaced, a parameter or a module around it, and the parameter that then stays
    what it was."""
    first, second = module.text(tie.targets[0]), module.text(tie.value)
    for end, other in ((first, second), (second, first)):
        while end.count(".") and not other.startswith(f"{end}."):
            yield end, other
            end = end.rpartition(".")[0]


def is_tie(module: Module, assign: ast.Assign) -> bool:
    """`self.head.weight = self.embed.weight`."""
    ends = (assign.targets[0], assign.value)
    return all(_is_parameter_of_own(module, each) for each in ends)


def _is_parameter_of_own(module: Module, node: ast.expr) -> bool:
    is_weight = isinstance(node, ast.Attribute) and node.attr in ("weight", "bias")
    return is_weight and module.text(node).startswith("self.") and module.text(node).count(".") > 1


def _ties_again(module: Module, function: FunctionNode, tie: ast.Assign) -> bool:
    """The method replaces both, or calls one of its own that may tie them."""
    stored = {module.text(each.targets[0]) for each in module.nodes(ast.Assign, function)}
    ends = (module.text(tie.targets[0]), module.text(tie.value))
    if all(any(end == each or end.startswith(f"{each}.") for each in stored) for end in ends):
        return True
    around = module.function_of(tie)
    tying = around.name if around is not None else ""
    return any(
        "tie" in called(call) or called(call) == tying
        for call in module.nodes(ast.Call, function)
        if (on := receiver(call)) is not None and module.text(on) in ("self", "super()")
    )
