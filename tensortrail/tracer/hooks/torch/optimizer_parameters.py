"""Optimizers are made of the parameters that a model has then, and step over these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.compiler import is_compiling
from torch.nn import Module
from torch.nn.modules.module import register_module_parameter_registration_hook
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after, looking_before
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.noticing.kept_graphs import KeptGraphs
from tensortrail.tracer.noticing.models_without_parameters import (
    note_without_parameters,
    spent_iterator,
)
from tensortrail.tracer.noticing.starved_optimizers import StarvedOptimizers
from tensortrail.tracer.noticing.trained_parameters import TrainedParameters
from tensortrail.tracer.noticing.twin_optimizers import TwinOptimizers
from tensortrail.tracer.noticing.variable_names import variable_of
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch"
NO_LEAF = "can't optimize a non-leaf Tensor"
EMPTY = "got an empty parameter list"
MOST_APART = 50
"""Parameters whose state does not fit that are noted."""


def install(recorder: Recorder, patches: Patches) -> None:
    trained = TrainedParameters(recorder)
    _watch_refusals(recorder, patches, trained)
    _watch_training(recorder, patches, trained)


def _watch_refusals(recorder: Recorder, patches: Patches, trained: TrainedParameters) -> None:
    """What an optimizer is made of, gets added or loads, and does not take."""
    patches.wrap(Optimizer, "__init__", _making(recorder))
    patches.wrap(Optimizer, "load_state_dict", _loading(recorder, trained))
    patches.wrap(Optimizer, "add_param_group", _adding(recorder))


def _making(recorder: Recorder) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        spent = spent_iterator(args[1] if len(args) > 1 else kwargs.get("params"))
        try:
            return original(*args, **kwargs)
        except ValueError as error:
            if EMPTY in str(error):
                made = type(args[0]).__name__
                recorder.guarded(note_without_parameters, recorder.cut_graphs, made, spent)
            raise

    return around


def _loading(recorder: Recorder, trained: TrainedParameters) -> Around:
    def around(original: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("state_dict")
        try:
            result = original(optimizer, *args, **kwargs)
        except ValueError:
            recorder.guarded(_other_groups, optimizer, given, trained.made_at(optimizer))
            raise
        except KeyError as error:
            recorder.guarded(_other_class, optimizer, error, trained.made_at(optimizer))
            raise
        recorder.guarded(_other_shapes, optimizer, trained.made_at(optimizer))
        return result

    return around


def _adding(recorder: Recorder) -> Around:
    def around(original: Any, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(optimizer, *args, **kwargs)
        except ValueError as error:
            if NO_LEAF in str(error) and args:
                recorder.guarded(_no_leaf, args[0])
            raise

    return around


def _watch_training(recorder: Recorder, patches: Patches, trained: TrainedParameters) -> None:
    """Which parameters it is given, and whether they have gradients when it steps."""
    starved = StarvedOptimizers(recorder, recorder.cut_graphs)
    _watch_parameters(recorder, patches, trained)
    _watch_steps(recorder, trained, starved)
    _watch_clearing(recorder, patches, starved)
    recorder.at_close.append(trained.at_end)
    recorder.at_close.append(lambda: starved.at_end(trained.told))


def _watch_parameters(recorder: Recorder, patches: Patches, trained: TrainedParameters) -> None:
    """Those that optimizers are given, and those that models get later."""

    def given(_: Recorder, result: Any, optimizer: Optimizer, *__: Any, **___: Any) -> None:
        recorder.models.look_here()
        trained.given(optimizer, optimizer.param_groups[-1])

    def registered(module: Module, name: str, parameter: Any) -> None:
        if recorder.active and not is_compiling():
            recorder.guarded(lambda _: trained.registered(module, name, parameter))

    patches.wrap(Optimizer, "add_param_group", looking_after(recorder, given))
    recorder.at_close.append(register_module_parameter_registration_hook(registered).remove)


def _watch_steps(
    recorder: Recorder, trained: TrainedParameters, starved: StarvedOptimizers
) -> None:
    twins = TwinOptimizers(recorder, trained.held)
    graphs = KeptGraphs(recorder)

    def looked(_: Recorder, optimizer: Optimizer) -> None:
        trained.stepped(optimizer)
        recorder.refused_backward.stepped(optimizer)
        starved.stepped(optimizer, trained.made_at(optimizer))
        twins.stepped(optimizer, trained.made_at(optimizer))
        graphs.stepped()

    def stepped(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if recorder.active and not is_compiling():
            recorder.optimizer_steps += 1
            recorder.guarded(looked, optimizer)

    recorder.at_close.append(register_optimizer_step_post_hook(stepped).remove)


def _watch_clearing(recorder: Recorder, patches: Patches, starved: StarvedOptimizers) -> None:
    """Gradients that are set to zero do not starve an optimizer."""

    def clears(_: Recorder, optimizer: Optimizer, *__: Any, **___: Any) -> None:
        starved.cleared(each for group in optimizer.param_groups for each in group["params"])

    def clears_model(_: Recorder, module: Module, *__: Any, **___: Any) -> None:
        starved.cleared(module.parameters())

    patches.wrap(Optimizer, "zero_grad", looking_before(recorder, clears))
    patches.wrap(Module, "zero_grad", looking_before(recorder, clears_model))


def _no_leaf(recorder: Recorder, group: Any) -> None:
    """An optimizer was given what was computed: its gradients would go to what it came from."""
    given = group.get("params", ()) if isinstance(group, dict) else ()
    for each in given if isinstance(given, list) else ():
        if isinstance(each, Tensor) and not each.is_leaf:
            facts = {"no leaf": variable_of(each), "by": type(each.grad_fn).__name__}
            recorder.note(Did.HOOK, recorder.storages.entry(each), op="Optimizer", facts=facts)
            return


def _other_groups(recorder: Recorder, optimizer: Optimizer, given: Any, made: Any) -> None:
    there = [len(each["params"]) for each in given["param_groups"]]
    facts = {
        "groups there": there,
        "groups here": [len(each["params"]) for each in optimizer.param_groups],
        "optimizer": type(optimizer).__name__,
        "made": list(made or ()),
    }
    recorder.note(Did.HOOK, op="Optimizer.load_state_dict", facts=facts)


def _other_class(recorder: Recorder, optimizer: Optimizer, error: KeyError, made: Any) -> None:
    """It was given states that lack what its class keeps for each parameter."""
    kept = next((each for each in optimizer.state.values() if isinstance(each, dict) and each), {})
    lacks = error.args[0] if error.args else None
    if type(lacks) is str and kept and lacks not in kept:
        facts = {
            "lacks": lacks,
            "keeps": sorted(map(str, kept)),
            "optimizer": type(optimizer).__name__,
            "made": list(made or ()),
        }
        recorder.note(Did.HOOK, op="Optimizer.load_state_dict", facts=facts)


def _other_shapes(recorder: Recorder, optimizer: Optimizer, made: Any) -> None:
    """State is given to parameters in their order, whatever shapes they have. Plain optimizers keep
    it in the shape of the parameter."""
    pairs = list(_averages(optimizer))
    apart = [(average, weight) for average, weight in pairs if average.shape != weight.shape]
    averages, weights = ([each[side].shape for each in pairs] for side in (0, 1))
    for number, (average, weight) in enumerate(apart[:MOST_APART]):
        facts: dict[str, Any] = {"does not fit": True}
        if number == 0:
            facts = {
                "shapes": [list(average.shape), list(weight.shape)],
                "reordered": Counter(averages) == Counter(weights),
                "optimizer": type(optimizer).__name__,
                "made": list(made or ()),
            }
        entry = recorder.storages.entry(average)
        recorder.note(Did.HOOK, entry, op="Optimizer.load_state_dict", facts=facts)


def _averages(optimizer: Optimizer) -> Iterator[tuple[Tensor, Tensor]]:
    """What is kept of the gradients of each parameter, with the parameter."""
    for weight, state in list(optimizer.state.items()):
        average = state.get("exp_avg", state.get("momentum_buffer")) if state else None
        if average is not None and type(average) in PLAIN and type(weight) in PLAIN:
            yield average, weight
