"""What the parameters of a function are, and that they lie where the caller has put them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.libraries.components import COMPONENT, said_layer, says_model
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.places import NUMBER, Held, Place, What, Where
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.view import FunctionNode

_PLAIN = frozenset(
    "int float str bool bytes dtype ndarray Callable Path Generator Image PIL np".split()
)
_BOXES = frozenset("list List tuple Tuple Sequence Iterable dict Dict Mapping".split())
_TAKES_ANYTHING = frozenset({"isinstance", "torch.from_numpy", "torch.tensor", "torch.as_tensor"})
_AUTOGRAD = "torch.autograd.Function"
_HOOKS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})
_JOINS = frozenset(f"torch.{each}" for each in ("cat", "concat", "stack", "hstack", "vstack"))
_TENSORS_OF_METHODS = {
    **dict.fromkeys(("masked_fill", "masked_fill_", "masked_select", "expand_as", "view_as"), 0),
    **dict.fromkeys(("index_select", "scatter_", "scatter_add_", "index_add_", "index_copy_"), 1),
}
"""Methods that only tensors have, with the position of a tensor among their arguments."""
_OF_ARRAYS = frozenset({"shape", "ndim", "size", "dim"})
_TENSORS = frozenset("Tensor FloatTensor LongTensor IntTensor BoolTensor Parameter".split())


def parameters_of(
    function: FunctionNode, cls: ast.ClassDef | None, world: World
) -> dict[str, Held]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    evidence: set[str] | None = None
    types: set[str] | None = None
    numbers = set(_numbers_by_default(arguments))
    found: dict[str, Held] = {}
    for index, each in enumerate(every):
        if index == 0 and cls is not None and each.arg == "self" and not is_static(function):
            found["self"] = Held(What.SELF, path="self")
            continue
        held = _by_annotation(each, world)
        if held is NUMBER:
            types = _asked_for_types(function, world) if types is None else types
        if held is NUMBER and each.arg in (types or ()):
            held = Held(What.UNKNOWN, _where(each.arg), path=each.arg)
        if held is None:
            if evidence is None:
                evidence = used_as_tensors(function, world) | given_to_a_hook(function, world)
            known = each.arg in evidence or (index == 1 and _takes_a_tensor(function, cls, world))
            if each.arg in numbers and not (known and _is_kept(each.arg, function, world)):
                found[each.arg] = NUMBER
                continue
            what = What.TENSOR if known else What.UNKNOWN
            held = Held(what, _where(each.arg), path=each.arg)
        found[each.arg] = held
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            found[rest.arg] = Held(path=rest.arg)
    return found


def _numbers_by_default(arguments: ast.arguments) -> Iterator[str]:
    """Parameters that are numbers or texts unless something else is given."""
    for each, default in with_defaults(arguments):
        value = default.value if isinstance(default, ast.Constant) else None
        if isinstance(value, (int, float, str)):
            yield each.arg


def _is_kept(name: str, function: FunctionNode, world: World) -> bool:
    """The function does not bind the name anew: its uses are of the argument."""
    return not any(
        each.id == name and isinstance(each.ctx, ast.Store)
        for each in world.tree.nodes(ast.Name, function)
    )


def _where(name: str) -> frozenset[Place]:
    return frozenset({Place(Where.OF, name)})


def _by_annotation(argument: ast.arg, world: World) -> Held | None:
    """None if the annotation does not say."""
    name = argument.arg
    if argument.annotation is None:
        if name == "device" or name.endswith("_device"):
            return Held(What.DEVICE, frozenset({Place(Where.DEVICE, name)}), path=name)
        return None
    said = set(_names_in(argument.annotation))
    if "device" in said or name == "device":
        return Held(What.DEVICE, frozenset({Place(Where.DEVICE, name)}), path=name)
    if said & _TENSORS and not names_other_classes(argument.annotation, world):
        if said & _BOXES:
            boxed = Held(What.TENSOR, _where(name))
            whole = not said & {"Union", "|"} and "|" not in ast.unparse(argument.annotation)
            return Held(What.BOX, each=boxed, path=name) if whole else None
        mixed = said & _PLAIN
        return Held(What.UNKNOWN if mixed else What.TENSOR, _where(name), path=name)
    if said & _PLAIN and not said & {"Any", "object"}:
        return NUMBER if not said & _BOXES else Held(What.BOX, each=NUMBER)
    if says_model(argument.annotation, world):
        return Held(What.MODULE, _where(name), path=name, cls=COMPONENT)
    layer = said_layer(argument.annotation, world)
    if layer is not None:
        return Held(What.MODULE, _where(name), path=name, cls=layer)
    return Held(What.UNKNOWN, _where(name), path=name)


def names_other_classes(annotation: ast.expr, world: World) -> bool:
    """What is called like torch's tensors there are classes of the project, and other ones."""
    named = [each for each in ast.walk(annotation) if last_name(each) in _TENSORS]
    return bool(named) and all(world.is_no_tensor(world.qualified(each)) for each in named)


def _takes_a_tensor(function: FunctionNode, cls: ast.ClassDef | None, world: World) -> bool:
    """The first argument of a module's `forward`, if the function never asks what it is."""
    if cls is None:
        return False
    if function.name == "backward":  # gradients come as tensors
        return any(world.qualified(each) == _AUTOGRAD for each in cls.bases)
    if function.name != "forward" or not world.is_module(cls):
        return False
    if len(function.args.args) < 2:  # the others can only be named
        return False
    name = function.args.args[1].arg
    for call in world.tree.nodes(ast.Call, function):
        given = [getattr(each, "id", "") for each in call.args]
        called = call.func.id if isinstance(call.func, ast.Name) else ""
        if called in ("isinstance", "len", "type") and given[:1] == [name]:
            return False
        if name in given and (called == "range" or world.qualified(call.func) == "torch.arange"):
            return False  # a number of steps
    return not _is_asked_for_parts(function, name, world)


def given_to_a_hook(function: FunctionNode, world: World) -> set[str]:
    """The argument of a function that the file registers on a tensor: its gradient."""
    if function.name not in world.tree.once(_registered_on_tensors, world.tree.root):
        return set()
    given = [each.arg for each in function.args.args if each.arg != "self"]
    return set(given[:1])


def _registered_on_tensors(tree: Tree, root: ast.Module) -> frozenset[str]:
    """`f` of `x.register_hook(f)` and of `x.register_hook(self.f)`."""
    return frozenset(
        last_name(call.args[0])
        for call in tree.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _HOOKS and call.args
    )


def _is_asked_for_parts(function: FunctionNode, name: str, world: World) -> bool:
    """`batch.pos`: an object that holds tensors, and is none."""
    known = names("keeps", "attributes") | names("plain", "attributes")
    called = {id(each.func) for each in world.tree.nodes(ast.Call, function)}
    return any(
        isinstance(each.value, ast.Name)
        and each.value.id == name
        and each.attr not in known
        and each.attr != "device"
        and id(each) not in called
        for each in world.tree.nodes(ast.Attribute, function)
    )


def _asked_for_types(function: FunctionNode, world: World) -> set[str]:
    """Names with two conditions or more such as `isinstance(rows, int)`: what is said of such an
    argument may leave tensors out, and they are what remains."""
    asked = Counter(
        call.args[0].id
        for call in world.tree.nodes(ast.Call, function)
        if isinstance(call.func, ast.Name) and call.func.id == "isinstance"
        if call.args and isinstance(call.args[0], ast.Name)
    )
    return {name for name, count in asked.items() if count > 1}


def _names_in(annotation: ast.expr) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                yield from _names_in(ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError):
                return


def used_as_tensors(function: FunctionNode, world: World) -> set[str]:
    """Names that the function asks for what only a tensor has, and does not test the type of."""
    found: set[str] = set()
    doubtful: set[str] = set()
    attributes = names("only_tensors", "attributes")
    for asked in world.tree.nodes(ast.Attribute, function):
        if asked.attr in attributes and isinstance(asked.value, ast.Name):
            found.add(asked.value.id)
    for cut in world.tree.nodes(ast.Subscript, function):
        if isinstance(cut.value, ast.Name) and _cuts_dimensions(cut.slice):
            found.add(cut.value.id)
    for product in world.tree.nodes(ast.BinOp, function):
        if isinstance(product.op, ast.MatMult):
            sides = (product.left, product.right)
            found.update(each.id for each in sides if isinstance(each, ast.Name))
    for call in world.tree.nodes(ast.Call, function):
        first = call.args[0] if call.args else None
        found.update(_taken_beside(call, world))
        if isinstance(first, ast.Name):
            dotted = world.qualified(call.func)
            if dotted in _TAKES_ANYTHING or dotted.startswith("numpy."):
                doubtful.add(first.id)
            elif _takes_a_tensor_first(dotted):
                found.add(first.id)
        elif isinstance(first, (ast.List, ast.Tuple)) and world.qualified(call.func) in _JOINS:
            found |= {each.id for each in first.elts if isinstance(each, ast.Name)}
        shapes = set(_whole_shapes(call))
        if shapes and world.qualified(call.func) in names("fresh", "shaped"):
            found |= shapes
        if isinstance(call.func, ast.Attribute) and _is_asked_as_a_tensor(call.func):
            owner = _made_of(call.func.value)
            if owner is not None:
                found.add(owner.id)
    return found - doubtful


def _taken_beside(call: ast.Call, world: World) -> Iterator[str]:
    """`b` of `torch.matmul(a, b)` and `mask` of `x.masked_fill(mask, 0)`: neither is a number."""
    asked = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    at = _TENSORS_OF_METHODS.get(asked)
    if asked in names("meets", "second") and _is_of_torch(world.qualified(call.func)):
        at = 1
    if at is not None and len(call.args) > at:
        taken = call.args[at]
        if isinstance(taken, ast.Name):
            yield taken.id


def with_a_shape(function: FunctionNode, world: World) -> frozenset[str]:
    """`x` of `x.shape`, `x.ndim` and `x.size(0)`, unless the function gives it to numpy."""
    asked = {
        ast.unparse(each.value)
        for each in world.tree.nodes(ast.Attribute, function)
        if each.attr in _OF_ARRAYS and isinstance(each.value, (ast.Name, ast.Attribute))
    }
    of_numpy = {
        ast.unparse(each)
        for call in world.tree.nodes(ast.Call, function)
        if world.qualified(call.func).startswith("numpy.")
        for each in call.args
    }
    return frozenset(asked - of_numpy)


def _whole_shapes(call: ast.Call) -> Iterator[str]:
    """`x` of `torch.zeros(x.shape)` and of `torch.zeros(*x.shape)`: what is made beside it is a
    tensor."""
    for each in call.args:
        shape = each.value if isinstance(each, ast.Starred) else each
        if not isinstance(shape, ast.Attribute) or shape.attr != "shape":
            continue
        if isinstance(shape.value, ast.Name):
            yield shape.value.id


def _takes_a_tensor_first(dotted: str) -> bool:
    """A function of torch that raises for anything else."""
    if not _is_of_torch(dotted):
        return False
    name = dotted.rpartition(".")[2]
    lists = (("meets", "strictly"), *(("keeps", each) for each in _KEEPING))
    return dotted in names("follows", "like") or any(name in names(*each) for each in lists)


def _is_of_torch(dotted: str) -> bool:
    return dotted.rpartition(".")[0] in ("torch", "torch.nn.functional")


def _is_asked_as_a_tensor(asked: ast.expr) -> bool:
    return isinstance(asked, ast.Attribute) and asked.attr in names("only_tensors", "methods")


def _made_of(node: ast.expr) -> ast.Name | None:
    """`x` of `(x == config.pad).long()` and of `x.float()`: a tensor comes of a tensor alone."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            plain = _is_plain(node.comparators[0])
            if not plain or isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
                return None
            node = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            sides = (node.left, node.right)
            others = [each for each in sides if not isinstance(each, ast.Constant)]
            if len(others) != 1:
                return None
            node = others[0]
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not any(node.func.attr in names("keeps", each) for each in _KEEPING):
                return None
            node = node.func.value
        else:
            return None
    return node


_KEEPING = ("methods", "shapes", "reductions")


def _is_plain(node: ast.expr) -> bool:
    """A number, or a setting: `config.pad_token_id`."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    named = isinstance(node, ast.Attribute) and node.attr not in names("keeps", "attributes")
    return named or isinstance(node, ast.Constant)


def _cuts_dimensions(index: ast.expr) -> bool:
    """`x[:, None]`, `x[..., :n]`: no list or mapping can be cut so."""
    return isinstance(index, ast.Tuple) and any(
        isinstance(each, ast.Slice)
        or (isinstance(each, ast.Constant) and each.value in (None, Ellipsis))
        for each in index.elts
    )


def is_static(function: FunctionNode) -> bool:
    return any(getattr(each, "id", "") == "staticmethod" for each in function.decorator_list)
