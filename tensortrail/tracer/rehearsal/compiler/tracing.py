"""The compiler's tracer (`torch._dynamo`) takes simulated tensors for plain ones of a GPU.

It traces the user's function with stand-ins that say `cuda`, breaks and compiles anew where it
would on a machine with GPUs, and what it traced is run on the simulated tensors themselves: each
operation is computed, checked, accounted and recorded as without it."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import torch
from torch import Tensor
from torch._dynamo import convert_frame, eval_frame, output_graph, trace_rules, utils
from torch._dynamo.callback import CompilationCallbackHandler
from torch._dynamo.guards import GuardBuilder, install_guard
from torch._dynamo.source import AttrSource
from torch._dynamo.variables import builder
from torch._dynamo.variables import torch as torch_variables
from torch._dynamo.variables.builder import SourcelessBuilder, VariableBuilder
from torch._dynamo.variables.ctx_manager import GenericDeviceVariable
from torch._dynamo.variables.optimizer import OptimizerVariable
from torch._functorch._aot_autograd import runtime_wrappers
from torch._functorch._aot_autograd import utils as aot_utils
from torch.fx.experimental import proxy_tensor

from tensortrail.tracer.patching.compiled_code import leave_alone, stepping
from tensortrail.tracer.patching.patches import Compiled
from tensortrail.tracer.rehearsal.compiler.graph_breaks import Between
from tensortrail.tracer.rehearsal.compiler.refused_calls import Refusals
from tensortrail.tracer.rehearsal.devices.torch_cuda import Properties
from tensortrail.tracer.rehearsal.operations.ask_mode import AskMode
from tensortrail.tracer.rehearsal.operations.compute_mode import ComputeMode
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.host_reads import HostReads
from tensortrail.tracer.rehearsal.tensor.simulated import SimParameter, SimTensor

KINDS = (SimTensor, SimParameter)
Around = Callable[..., Any]


def install(
    simulation: Simulation, replaced: Replacements, functions: Replacements, methods: Replacements
) -> None:
    _know_tensors(replaced)
    _know_functions(replaced, functions)
    _pass_over_ours(replaced)
    _step_aside(simulation, replaced)
    _tell_refusals(simulation, replaced)
    _work_on_devices(simulation, replaced)

    @contextmanager
    def compiling(original: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        with methods.aside(), original(*args, **kwargs) as given:
            yield given

    _wrap(replaced, CompilationCallbackHandler, "install_callbacks", compiling)


def _tell_refusals(simulation: Simulation, replaced: Replacements) -> None:
    """Calls that the compiler refuses to trace are told with the program's own tensors."""
    refusals = Refusals()

    def refused(func: Any, args: Any, kwargs: Any, error: Exception) -> None:
        simulation.refused(func, args, kwargs, error)

    def tracing(original: Any, *args: Any, **kwargs: Any) -> Any:
        with refusals.traced(refused):
            return original(*args, **kwargs)

    def running(original: Any, tracer: Any, node: Any, args: Any, kwargs: Any, module: Any) -> Any:
        with AskMode(simulation), refusals.calling(node, args, kwargs):
            return original(tracer, node, args, kwargs, module)

    def standing_in(original: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        fake = original(value, *args, **kwargs)
        refusals.stands_in(fake, value)
        return fake

    _wrap(replaced, convert_frame, "_compile", tracing)
    _wrap(replaced, builder, "wrap_to_fake_tensor_and_record", standing_in)
    _wrap(replaced, utils, "run_node", running)


def _work_on_devices(simulation: Simulation, replaced: Replacements) -> None:
    """What the compiler itself does with tensors is done on the simulated devices."""

    def asking(original: Any, *args: Any, **kwargs: Any) -> Any:
        with AskMode(simulation):
            return original(*args, **kwargs)

    def computing(original: Any, *args: Any, **kwargs: Any) -> Any:
        with ComputeMode(simulation), AskMode(simulation):
            return original(*args, **kwargs)

    def optimizing(original: Any, variable: Any, tx: Any, name: str, *args: Any) -> Any:
        ask = computing if name == "_init_group" else asking  # its state is made for real
        return ask(original, variable, tx, name, *args)

    _wrap(replaced, output_graph.OutputGraph, "_call_user_compiler", asking)
    _wrap(replaced, OptimizerVariable, "call_method", optimizing)
    _wrap(replaced, builder, "clone_input", computing)


def _wrap(replaced: Replacements, owner: Any, name: str, around: Around) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    replaced.put(owner, name, wrapped)


def _know_tensors(replaced: Replacements) -> None:
    plain_kinds = VariableBuilder._type_dispatch.__func__
    plain_subclass = builder.infer_subclass_type

    def wrap_simulated(self: Any, value: Tensor) -> Any:
        index = AttrSource(self.get_source(), "index")  # C++ sees no difference between devices
        install_guard(index.make_guard(GuardBuilder.CONSTANT_MATCH))
        return self.wrap_tensor(value)

    def kinds(cls: Any) -> Any:
        known = plain_kinds(cls)
        simulated = dict.fromkeys((*KINDS, *SimParameter.__subclasses__()), wrap_simulated)
        return {**known, **simulated, Properties: cls.wrap_literal}

    def subclass(value: Any) -> Any:
        return None if isinstance(value, SimTensor) else plain_subclass(value)

    replaced.put(VariableBuilder, "_type_dispatch", classmethod(kinds))
    replaced.put(builder, "infer_subclass_type", subclass)
    handled = (*runtime_wrappers.HANDLED_TYPES, *KINDS)
    for owner in (runtime_wrappers, proxy_tensor):
        replaced.put(owner, "HANDLED_TYPES", handled)
    if hasattr(aot_utils, "_GRAPHSAFE_RNG_DEVICE_TYPES"):  # states for CUDA graphs
        replaced.put(aot_utils, "_GRAPHSAFE_RNG_DEVICE_TYPES", set())


def _know_functions(replaced: Replacements, functions: Replacements) -> None:
    """What stands in the place of a function of torch's is treated as that."""
    known = (
        trace_rules.get_torch_obj_rule_map(),
        torch_variables.TorchInGraphFunctionVariable._get_handlers(),
        torch_variables.constant_fold_functions,
        torch_variables.constant_fold_functions_need_guards,
    )
    stands_for = {
        before: ours for before, ours in functions.pairs() if isinstance(before, Hashable)
    }
    for before, ours in stands_for.items():
        for registry in known:
            if before in registry:
                replaced.put(registry, ours, registry[before])
    for kind in GenericDeviceVariable.__subclasses__():  # `with torch.cuda.device(1):`
        for name in ("_exchange_fn", "_maybe_exchange_fn"):
            if (ours := stands_for.get(getattr(kind, name))) is not None:
                replaced.put(kind, name, staticmethod(ours))
    constant = SourcelessBuilder._type_handlers[torch.device]
    replaced.put(SourcelessBuilder._type_handlers, Properties, constant)
    replaced.put(utils.common_constant_types, Properties, None)


def _pass_over_ours(replaced: Replacements) -> None:
    """In pieces between two graphs our code is called as a GPU's kernels are."""
    ours = re.escape(str(Path(__file__).parents[1]))
    skipped = re.compile(f"{trace_rules.SKIP_DIRS_RE.pattern}|{ours}")
    replaced.put(trace_rules, "SKIP_DIRS_RE", skipped)
    for kind in (SimTensor, HostReads, AskMode, ComputeMode):
        for function in vars(kind).values():
            function = getattr(function, "fget", getattr(function, "__func__", function))
            if isinstance(function, FunctionType):
                leave_alone(function)


def _step_aside(simulation: Simulation, replaced: Replacements) -> None:
    original, between = eval_frame.set_eval_frame, Between(simulation)
    stepper = stepping(original, Compiled(), AskMode, between.begins, between.ends)
    for name in ("set_eval_frame", "_maybe_set_eval_frame"):
        if vars(eval_frame).get(name) is original:
            replaced.put(eval_frame, name, stepper)
    leave_alone(stepper, recursive=False)
