"""The tensors of a module are called by their paths in it from now on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch._C import DisableTorchFunction

from tensortrail.tracer.events.noting import Noting
from tensortrail.tracer.identity.inner_tensors import PLAIN, is_wrapper
from tensortrail.tracer.identity.model_names import ModelNames
from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.storages import Entry


class Naming(Noting):
    """The part of `Recorder` that gives names."""

    models: ModelNames

    def name_module(
        self, module: torch.nn.Module, root: str = "", anyway: bool = False
    ) -> list[Entry]:
        """Parameters and buffers are called by their path in the module from now on, `anyway` also
        where they have a longer one. Gives their storages."""
        return self.name_tensors(owned(module, root or self.models.of(module)), anyway)

    def name_tensors(self, tensors: Iterable[tuple[str, Any]], anyway: bool = False) -> list[Entry]:
        found: dict[int, Entry] = {}
        storages = self.storages
        with DisableTorchFunction():  # once for all of them
            for name, tensor in tensors:
                if type(tensor) in PLAIN:
                    own = storages.plain(tensor)
                    if own is not None:
                        storages.name(own, name)
                        found[own.number] = own
                    continue
                for entry in storages.entries(tensor):
                    storages.name(entry, name, anyway)
                    found[entry.number] = entry
                if is_wrapper(tensor):
                    self.guarded(_met, tensor)
        return list(found.values())


def _met(recorder: Any, tensor: Any) -> None:
    recorder.wrappers.met(tensor)
