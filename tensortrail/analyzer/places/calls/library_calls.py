"""What functions of torch, of other libraries and of Python give, and where. Their names are in
`library_names`."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.calls import methods
from tensortrail.analyzer.places.calls.called import Called, device_given, evaluator
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.modules import run_by_torch
from tensortrail.analyzer.places.calls.partials import is_partial_factory
from tensortrail.analyzer.places.calls.torch_classes import of_torch_class, without_device
from tensortrail.analyzer.places.held import ranks
from tensortrail.analyzer.places.held.devices import places_on
from tensortrail.analyzer.places.held.elements import element_of
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import member
from tensortrail.analyzer.places.held.mappings import mapping
from tensortrail.analyzer.places.held.operations import as_operand, combined
from tensortrail.analyzer.places.held.ranks import rank_of_fresh
from tensortrail.analyzer.places.libraries.components import COMPONENT, is_of_library
from tensortrail.analyzer.places.libraries.library import factories, names
from tensortrail.rules.places import MAYBE_SCALAR, NUMBER, UNKNOWN_HELD, Held, Place, What, Where

_NO_OPERATIONS = (
    "torch.nn.init.", "torch.distributed", "torch.utils", "torch.jit", "torch.autograd",
    "torch.cuda", "torch.compile", "torch.load", "torch.ops", "torch.fx", "torch.export",
    "torch.library", "torch.package", "torch.distributions", "torch.profiler",
    "torch.multiprocessing",
)  # fmt: skip
_DEVICE_OF_RANDN = 3
"""The position of `device` among the arguments of `randn_tensor`."""
_MANY = frozenset({"topk", "sort", "chunk", "split", "unbind", "unique", "meshgrid", "kthvalue"})


def of_library(world_of: Evaluating, called: Called, env: Environment) -> Held | None:
    """None of a function that is not known here: of the project, or of another library."""
    dotted = called.dotted
    if dotted in factories() and not called.draws_around_tensors:
        return _fresh(world_of, called, env)
    if dotted in names("on_gpu", "legacy"):
        return Held(What.TENSOR, frozenset({Place(Where.LITERAL, "cuda", called.node)}))
    if (held := _on_the_cpu(called)) is not None:
        return held
    if dotted.endswith(".from_pretrained") and is_of_library(dotted.rpartition(".")[0]):
        return _loaded(called)
    if (run := run_by_torch(world_of, called, env)) is not None:
        return run
    if is_partial_factory(world_of.world, called.node):
        return Held(made=called.node)
    if dotted == "torch.device":
        evaluate = evaluator(world_of, env)
        return Held(What.DEVICE, places_on(called.node, called.node, evaluate, dotted))
    if dotted in names("plain", "functions"):
        return NUMBER
    if dotted.partition(".")[0] in names("plain", "modules"):
        return NUMBER
    if dotted in ("torch.as_tensor", "torch.asarray"):
        return _as_tensor(world_of, called, env)
    if dotted in names("follows", "like"):
        place = device_given(world_of, called, env)
        first = called.first or UNKNOWN_HELD
        places = place if place is not None else first.places
        return Held(What.TENSOR, frozenset(places), rank=first.rank)
    if dotted in names("follows", "first"):
        return called.first or UNKNOWN_HELD
    if dotted == "torch.compile" and called.first is not None:
        return called.first  # the same module, or function, that is called the same way
    if dotted in names("returns_leaf_input", "on_device"):
        place = device_given(world_of, called, env)
        if place is None and len(called.args) < _DEVICE_OF_RANDN:
            place = without_device(world_of, called, env)
        return Held(What.TENSOR, place or frozenset())
    if dotted in names("modules", "wrappers"):
        return UNKNOWN_HELD
    if dotted.startswith("torch.nn.") and dotted.endswith(".from_pretrained"):
        return UNKNOWN_HELD  # an embedding around the tensor that is given
    of_audio = dotted.startswith("torchaudio.transforms.")
    if (of_audio and called.last_name in names("modules", "of_audio")) or (
        dotted.startswith("torch.nn.") and called.last_name[:1].isupper()
    ):
        return of_torch_class(world_of, called, env)
    if dotted.startswith("torch.") and not dotted.startswith(_NO_OPERATIONS):
        return _operation(world_of, called, env)
    if dotted.startswith("torch.distributed.") and called.last_name in names("meets", "processes"):
        sent = [*called.args, *called.named.values()]  # a list is all here or all there
        members = [member(each) if each.what is What.BOX else each for each in sent]
        world_of.meetings.meet(called.node, called.last_name, members, env, False)
    if dotted in names("meets", "gradients"):
        return _gradients(world_of, called, env)
    if dotted in names("meets", "elsewhere") or dotted in names("meets", "reshaped"):
        return _elsewhere(world_of, called, env)
    if dotted == "einops.unpack" and called.args:
        return Held(What.BOX, each=replace(called.args[0], rank=None, path=""))
    return _of_python(world_of, called, env)


def _of_python(world_of: Evaluating, called: Called, env: Environment) -> Held | None:
    """Functions of Python that pass on what they are given, or combine it."""
    dotted = called.dotted
    if dotted == "next" and called.args:
        return element_of(called.args[0])
    if dotted in ("list", "tuple", "reversed", "sorted", "iter", "tqdm.tqdm") and called.args:
        first = called.args[0]
        return first if first.what is What.BOX else Held(What.BOX, each=element_of(first))
    if dotted == "zip":
        return Held(What.BOX, each=Held(What.BOX, parts=tuple(map(element_of, called.args))))
    if dotted == "enumerate" and called.args:
        return Held(What.BOX, each=Held(What.BOX, parts=(NUMBER, element_of(called.args[0]))))
    if dotted == "dict" and called.node.keywords and not called.node.args and not called.unpacks:
        given = {each.arg: world_of.value(each.value, env) for each in called.node.keywords}
        return mapping({name: held for name, held in given.items() if name is not None})
    if dotted in ("abs", "min", "max", "sum"):
        if len(called.args) > 1:  # they are compared with each other
            world_of.meetings.meet(called.node, dotted, called.operands, env, by_element=True)
        return combined(called.operands)
    return None


def _on_the_cpu(called: Called) -> Held | None:
    """What a library always gives on the CPU."""
    dotted = called.dotted
    if dotted in names("host", "functions"):
        return _host(called)
    if dotted in names("host", "loaders") and "collate_fn" not in called.nodes:
        return Held(What.BOX, each=_host(called))
    to_cpu = getattr(called.nodes.get("map_location"), "value", None) == "cpu"
    if (dotted == "torch.load" and to_cpu) or (
        dotted in names("host", "mappings") and "device" not in called.nodes
    ):
        return Held(What.BOX, each=replace(_host(called), rank=MAYBE_SCALAR))
    return None


def _host(called: Called) -> Held:
    return Held(What.TENSOR, frozenset({Place(Where.HOST, by=called.node)}))


def _loaded(called: Called) -> Held:
    """A model made of a checkpoint: on the default device, unless a map spreads it."""
    spread = called.unpacks or "device_map" in called.nodes
    places = frozenset() if spread else frozenset({Place(Where.DEFAULT, by=called.node)})
    return Held(What.MODULE, places, cls=COMPONENT)


def _fresh(world_of: Evaluating, called: Called, env: Environment) -> Held:
    if called.dotted in names("fresh", "legacy"):
        first = called.first
        if first is None or first.what is What.TENSOR:
            return first or Held(What.TENSOR)
    places = device_given(world_of, called, env)
    copied = called.first if called.dotted == "torch.tensor" else None
    if places is None and copied is not None and copied.what is What.TENSOR:
        return replace(copied, moved=None)  # a copy lies where the tensor does
    if places is None:
        places = without_device(world_of, called, env)
    rank = rank_of_fresh(called.dotted, called.node, called.first)
    return Held(What.TENSOR, frozenset(places), rank=rank)


def _as_tensor(world_of: Evaluating, called: Called, env: Environment) -> Held:
    places = device_given(world_of, called, env)
    first = called.first or UNKNOWN_HELD
    if places is not None:
        return Held(What.TENSOR, places, rank=first.rank)
    if first.what is What.TENSOR:
        return first
    data = called.node.args[0] if called.node.args else None
    if isinstance(data, (ast.List, ast.ListComp)) and member(first).what is What.NUMBER:
        return Held(What.TENSOR, without_device(world_of, called, env))
    if first.what is What.NUMBER:
        return Held(What.TENSOR)  # a number, or an array of numpy
    return Held(What.TENSOR, first.places)


def _operation(world_of: Evaluating, called: Called, env: Environment) -> Held:
    last = called.last_name
    by_element = last in names("meets", "by_element") or _is_of_two(called)
    strictly = last in names("meets", "strictly")
    operands = called.operands
    if by_element and operands and operands[0].what is What.UNKNOWN:
        operands[0] = replace(operands[0], what=What.TENSOR)  # torch takes no number there
    if last in names("meets", "second") and not any(x.what is What.BOX for x in called.args[:2]):
        operands[:2] = [
            replace(each, what=What.TENSOR) if each.what is What.UNKNOWN else each
            for each in operands[:2]
        ]
    if by_element or strictly:
        world_of.meetings.meet(called.node, last, operands, env, by_element)
    found = combined(operands)
    if found.what is not What.TENSOR:
        return Held(What.TENSOR) if by_element or strictly else UNKNOWN_HELD
    if not by_element and (last in names("keeps", "reductions") or last in _MANY):
        return methods.after_reduction(called, last, found, given=1)
    kept_shape = by_element or (last not in names("keeps", "shapes") and not strictly)
    return found if kept_shape else replace(found, rank=None)


def _gradients(world_of: Evaluating, called: Called, env: Environment) -> Held:
    """`torch.autograd.backward(loss, gradient)`, and `grad`, which gives one for each input."""
    own = called.last_name == "grad"
    given = _given(called, 2 if own else 1, "grad_outputs" if own else "grad_tensors")
    outputs = called.first or UNKNOWN_HELD
    if given is not None and outputs.what is not What.BOX:
        gradient = given if given.what is not What.BOX else member(given)
        world_of.meetings.meet(called.node, called.last_name, [outputs, gradient], env, False)
    inputs = _given(called, 1, "inputs") if own else None
    if inputs is None:
        return UNKNOWN_HELD
    of = member(inputs) if inputs.what is What.BOX else inputs
    return Held(What.BOX, each=replace(of, path="", moved=None))


def _given(called: Called, index: int, name: str) -> Held | None:
    return called.args[index] if len(called.args) > index else called.named.get(name)


def _elsewhere(world_of: Evaluating, called: Called, env: Environment) -> Held:
    """An operation of einops or torchvision."""
    operands = called.operands
    if called.dotted in names("meets", "elsewhere") or len(operands) > len(called.args):
        world_of.meetings.meet(called.node, called.last_name, operands, env, by_element=False)
    found = combined(operands)
    if found.what is not What.TENSOR:
        return UNKNOWN_HELD
    found = replace(found, rank=ranks.rank_of_pattern(called.dotted, called.node), moved=None)
    packed = called.dotted == "einops.pack"
    return Held(What.BOX, parts=(found, NUMBER)) if packed else found


def _is_of_two(called: Called) -> bool:
    """`torch.max(a, b)`, not `torch.max(a, dim)`."""
    if called.dotted not in ("torch.max", "torch.min") or len(called.args) != 2:
        return False
    return all(as_operand(each).what is What.TENSOR for each in called.args)
