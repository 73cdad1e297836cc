"""A rehearsal is put on, and every trace of it is taken off again."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.overrides import handle_torch_function

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.names_at_end import name_what_lives
from tensortrail.tracer.identity.storages import PLAIN
from tensortrail.tracer.rehearsal import state, without_recording
from tensortrail.tracer.rehearsal.compiler import scripts
from tensortrail.tracer.rehearsal.compiler.torch_compile import Compiler
from tensortrail.tracer.rehearsal.devices import random_numbers, torch_cuda
from tensortrail.tracer.rehearsal.devices.data_parallel import install as install_parallel
from tensortrail.tracer.rehearsal.devices.distributed import install as install_groups
from tensortrail.tracer.rehearsal.devices.first_use import forget_start
from tensortrail.tracer.rehearsal.devices.spec import Spec
from tensortrail.tracer.rehearsal.operations import cpp_checks, short_moves
from tensortrail.tracer.rehearsal.operations.modes import (
    UNSHAPED,
    AskMode,
    ComputeMode,
    moved,
    to_cuda,
)
from tensortrail.tracer.rehearsal.operations.simulation import Simulation, plain_data
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.streams.races import Listener, Use
from tensortrail.tracer.rehearsal.tensor import (
    files,
    legacy_types,
    moved_in_place,
    pinned_memory,
    storages,
)
from tensortrail.tracer.rehearsal.tensor.plain_subclasses import install as install_subclasses
from tensortrail.tracer.rehearsal.tensor.simulated import (
    ANSWERS,
    KNOWN,
    SimParameter,
    SimTensor,
    made,
    set_data,
)
from tensortrail.tracer.rehearsal.tensor.wrapper_subclasses import install as install_wrappers
from tensortrail.tracer.watching.watched_functions import WATCHED, StandIn

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder


class Rehearsal:
    """`with Rehearsal(Spec(2)): ...`, or below a recording, which arms the threads."""

    def __init__(self, spec: Spec) -> None:
        self.simulation = Simulation(spec)
        self._replaced = Replacements()
        self._methods = Replacements()
        self._here = threading.local()

    def __enter__(self) -> Rehearsal:
        self.start()
        without_recording.install(self, self._replaced)
        self._asking = self.arm()
        self._asking.__enter__()
        return self

    def __exit__(self, *_: Any) -> None:
        self._asking.__exit__(None, None, None)
        self.disarm()
        self.stop()

    def start(self) -> None:
        if state.current is not None:
            raise RuntimeError("a rehearsal is on already")
        self._compiler = Compiler()
        state.current = self.simulation
        PLAIN.update((SimTensor, SimParameter))
        self._steps = register_optimizer_step_post_hook(self._stepped)
        try:
            self._replace()
            self.simulation.not_used_yet()
        except BaseException:
            self.stop()
            raise

    def _stepped(self, *_: Any) -> None:
        self.simulation.memory.step += 1

    def listen(self, recorder: Recorder) -> None:
        """The trail says where simulated storages lie, and which copies were read too early."""

        index_of = self.simulation.memory.index_of
        count = self.simulation.spec.count
        known: dict[int | None, str] = {index: f"cuda:{index}" for index in range(count)}

        def locate(storage: Any) -> str:
            return known.get(index_of(storage), "")

        def early(func: Any, tensor: Any, index: int) -> None:
            entry = recorder.storages.entry(tensor)
            if not recorder.often(Did.EARLY, func, 1):
                recorder.note(Did.EARLY, entry, op=func, facts={"device": f"cuda:{index}"})

        def raced(entry: Any, uses: Sequence[Use]) -> None:
            for use in uses:
                did = Did.RACE if use is uses[-1] else Did.USED
                facts = {"does": use.does, "stream": str(use.queue)}
                recorder.note_at(use.site, did, entry, op=recorder.op_text(use.op), facts=facts)

        def names() -> Callable[[Any], str]:
            recorder.guarded(name_what_lives)
            return lambda storage: getattr(recorder.storages.of_storage(storage), "name", "")

        recorder.storages.locate = locate
        self.simulation.memory.names = names
        self.simulation.refused = recorder.failures.saw
        self.simulation.races.listener = Listener(
            recorder.site_here, recorder.storages.entry, raced, recorder.trouble
        )
        self.simulation.pending.told = lambda *read: recorder.guarded(lambda _: early(*read))

    def arm(self) -> AskMode:
        """Computing is put on in the running thread; asking is for the caller to put on."""
        self._here.computing = ComputeMode(self.simulation)
        self._here.computing.__enter__()
        return AskMode(self.simulation)

    def disarm(self) -> None:
        self._here.computing.__exit__(None, None, None)

    def stop(self) -> None:
        legacy_types.forget_default_device()
        self._steps.remove()
        self.simulation.races.end()
        self._compiler.stop()
        self._methods.undo()
        self._replaced.undo()
        PLAIN.difference_update((SimTensor, SimParameter))
        state.current = None
        forget_start()

    def _replace(self) -> None:
        simulation, put = self.simulation, self._replaced.put
        torch_cuda.install(simulation, self._replaced)
        files.install(simulation, self._replaced)
        legacy_types.install(simulation, self._replaced)
        random_numbers.install(simulation, self._replaced)
        install_groups(self._replaced)
        install_wrappers(simulation, self._replaced)
        install_subclasses(self._replaced)
        moved_in_place.install(self._replaced)
        install_parallel(self._replaced)
        storages.install(simulation, self._replaced)
        for owner in (torch._C, torch.utils.dlpack):
            name = "_to_dlpack" if owner is torch._C else "to_dlpack"
            put(owner, name, cpp_checks.exported(getattr(owner, name)))
        put(torch._C, "_group_tensors_by_device_and_dtype", cpp_checks.grouped)
        pinned_memory.install(simulation.pinned, self._replaced)
        self._replace_methods()
        scripts.install(simulation, self._replaced)
        self._compiler.start(simulation, self._replaced, self._methods)

    def _replace_methods(self) -> None:
        simulation, put = self.simulation, self._methods.put
        to, to_gpu = Tensor.to, Tensor.cuda
        make_parameter = Parameter.__new__

        @functools.wraps(to)
        def tensor_to(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if torch._C._is_torch_function_mode_enabled():
                if len(args) == 1 and not kwargs:
                    copied = short_moves.moved(simulation, to, self, args[0])
                    if copied is not None:
                        return copied
                return handle_torch_function(to, (self,), self, *args, **kwargs)
            return moved(simulation, to, (self, *args), kwargs)

        @functools.wraps(to_gpu)
        def tensor_cuda(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            if torch._C._is_torch_function_mode_enabled():
                return handle_torch_function(to_gpu, (self,), self, *args, **kwargs)
            return to_cuda(simulation, (self, *args), kwargs)

        def new_parameter(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
            if type(data) in KNOWN.values():
                return made(cls, data, requires_grad)
            return make_parameter(cls, data, requires_grad)

        put(Tensor, "data", property(plain_data.__get__, set_data))
        put(Parameter, "__new__", new_parameter)
        put(
            UNSHAPED,
            "_allowed_methods",
            [*UNSHAPED._allowed_methods, tensor_to, tensor_cuda],
        )
        # Torch's C++ looks them up by name when a mode above has called the original.
        put(ANSWERS, tensor_to, ANSWERS[to])
        put(ANSWERS, tensor_cuda, ANSWERS[to_gpu])
        put(WATCHED, tensor_to, StandIn(to))
        put(WATCHED, tensor_cuda, StandIn(to_gpu))
        put(Tensor, "to", tensor_to)
        put(SimTensor, "to", tensor_to)
        put(Tensor, "cuda", tensor_cuda)
