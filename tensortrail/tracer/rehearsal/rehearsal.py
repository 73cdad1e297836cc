"""A rehearsal is put on, and every trace of it is taken off again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.rehearsal import state, without_recording
from tensortrail.tracer.rehearsal.compiler import script_devices, scripts
from tensortrail.tracer.rehearsal.compiler.torch_compile import Compiler
from tensortrail.tracer.rehearsal.devices import random_numbers, seldom_asked, torch_cuda
from tensortrail.tracer.rehearsal.devices.data_parallel import install as install_parallel
from tensortrail.tracer.rehearsal.devices.distributed import install as install_groups
from tensortrail.tracer.rehearsal.devices.first_use import forget_start
from tensortrail.tracer.rehearsal.devices.spec import Spec
from tensortrail.tracer.rehearsal.operations import (
    attention_kernels,
    cpp_checks,
    methods,
    optimizer_groups,
)
from tensortrail.tracer.rehearsal.operations.ask_mode import AskMode
from tensortrail.tracer.rehearsal.operations.compute_mode import ComputeMode
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor import (
    files,
    legacy_types,
    moved_in_place,
    pinned_memory,
    storages,
)
from tensortrail.tracer.rehearsal.tensor.plain_subclasses import install as install_subclasses
from tensortrail.tracer.rehearsal.tensor.simulated import SimParameter, SimTensor
from tensortrail.tracer.rehearsal.tensor.wrapper_subclasses import install as install_wrappers
from tensortrail.tracer.rehearsal.told_to_recorder import tell

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
        tell(self.simulation, recorder)

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
        script_devices.forget()
        self._methods.undo()
        self._replaced.undo()
        PLAIN.difference_update((SimTensor, SimParameter))
        state.current = None
        forget_start()

    def _replace(self) -> None:
        simulation, put = self.simulation, self._replaced.put
        torch_cuda.install(simulation, self._replaced)
        seldom_asked.install(simulation, self._replaced)
        attention_kernels.install(self._replaced)
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
        put(torch._C, "_group_tensors_by_device_and_dtype", optimizer_groups.grouped)
        pinned_memory.install(simulation.pinned, self._replaced)
        methods.install(simulation, self._methods)
        scripts.install(simulation, self._replaced)
        self._compiler.start(simulation, self._replaced, self._methods)
