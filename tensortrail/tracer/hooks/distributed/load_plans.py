"""A distributed checkpoint holds values for the tensors it is loaded into, or lacks them."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import empty_below, tensors_below
from tensortrail.tracer.identity.inner_tensors import device_of

MOST_MISSING = 100


class Planned:
    """One load: the state dict it goes into, and what is known of each key before it begins."""

    def __init__(self) -> None:
        self.target: Any = None
        self.facts: dict[str, dict[str, Any]] = {}
        self._meta: set[str] = set()
        self._missing: list[Any] = []
        self._left: list[torch.Tensor] = []
        self._asked: list[str] = []
        self._saved: list[str] = []

    def before(self, recorder: Recorder, state_dict: Any) -> None:
        """Tensors on meta are replaced by others: the module that had them keeps its own."""
        with torch._C.DisableTorchFunction():
            found = tensors_below(state_dict)
            self._meta = {key for key, each in found if device_of(each).type == "meta"}

    def after(self, recorder: Recorder, planner: Any) -> None:
        with torch._C.DisableTorchFunction():
            self._compare(recorder, planner)

    def _compare(self, recorder: Recorder, planner: Any) -> None:
        self.target = planner.original_state_dict
        saved = planner.metadata.state_dict_metadata
        self._asked, self._saved = list(planner.state_dict), list(saved)
        for key, tensor in tensors_below(planner.state_dict):
            there = saved.get(key)
            if there is None:
                self._missing.append(recorder.storages.entry(tensor))
                if isinstance(tensor, torch.nn.Parameter) or tensor.is_floating_point():
                    self._left.append(tensor)
                continue
            facts = self.facts[key] = {}
            dtype = getattr(getattr(there, "properties", None), "dtype", tensor.dtype)
            if dtype is not tensor.dtype:
                facts["cast"] = f"{str(dtype)[6:]} -> {str(tensor.dtype)[6:]}"
            if key in self._meta:
                facts["replaced"] = "meta"

    def tell_missing(self, recorder: Recorder, path: str) -> None:
        """A load that may be partial leaves these as they were."""
        recorder.incomplete_loads.left("dcp.load", self._left, path)
        self._left.clear()
        facts = {"said": "not in the checkpoint: left as it was"}
        for entry in self._missing[:MOST_MISSING]:
            if entry is not None:
                recorder.note(Did.HOOK, entry, op="dcp.load", facts=facts)

    def tell_empty(self, recorder: Recorder, path: str) -> None:
        """The load was given nothing to fill, as a whole or in one of its dicts."""
        for part in empty_below(self.target) if self._asked else ("",):
            left = sorted(key for key in self._saved if key.startswith(part and f"{part}."))
            if left:
                facts = {
                    "said": "nothing to fill: nothing is loaded",
                    "path": path,
                    "part": part,
                    "unfilled": tuple(left[:MOST_MISSING]),
                    "count": len(left),
                }
                recorder.note(Did.HOOK, op="dcp.load", facts=facts)

    def tell_refused(self, recorder: Recorder, path: str) -> None:
        """The load raised, and the checkpoint lacks some of what was asked for."""
        lacks = sorted(set(self._asked).difference(self._saved))
        if not lacks:
            return
        unused = sorted(set(self._saved).difference(self._asked))
        facts = {
            "said": "refused: not in the checkpoint",
            "path": path,
            "asked": len(self._asked),
            "count": len(lacks),
            "lacks": tuple(lacks[:MOST_MISSING]),
            "unused": tuple(unused[:MOST_MISSING]),
        }
        recorder.note(Did.HOOK, op="dcp.load", facts=facts)
