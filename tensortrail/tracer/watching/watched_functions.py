"""This table says which functions the mode acts on, and what is looked at before and noted after.

Whatever a watch does, the program gets the result of its call: faults are caught outside."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C import TensorBase
from torch.nn import Parameter

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.storages import PLAIN, is_wrapper
from tensortrail.tracer.noticing.fresh_memory import LOOKS_FOR_A_MODULE, LOOKS_FOR_A_TENSOR
from tensortrail.tracer.noticing.self_averages import same_memory

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

TO = TensorBase.to
"""As torch has it: while a rehearsal is on, another stands on `Tensor`."""
Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class Watch:
    """Nothing before and nothing after."""

    looks_before = False

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return None

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None: ...


class Creation(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        for entry in recorder.storages.entries(result):
            recorder.note(Did.CREATE, entry, op=func)
        if args and is_wrapper(args[0]):
            recorder.wrappers.met(args[0])
            recorder.wrappers.answered(func, args[0], result, kwargs)
        if func in LEAVES_UNWRITTEN:
            recorder.fresh_memory.made(result)
        if func in COPIES_VALUES and args and (graph := _with_graph(args[0])) is not None:
            recorder.cut_graphs.cut(func, graph)
        recorder.changed()


class SameType(Watch):
    """Operations whose answer must be of the operand's type, as clone and detach."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if args and is_wrapper(args[0]):
            recorder.wrappers.met(args[0])
            recorder.wrappers.answered(func, args[0], result, kwargs)
        elif args and self is not SHARES and _follows(recorder, func, args[0]):
            source, copy = recorder.storages.entry(args[0]), recorder.storages.entry(result)
            recorder.copied(source, copy)


SHARES = SameType()
"""Those that give the same memory."""


def _follows(recorder: Recorder, func: Any, tensor: Any) -> bool:
    """What is known of the values is worth knowing of a copy."""
    return recorder.fresh_memory.some or (func in COPIES and recorder.loads.gave_to(tensor))


class OtherNumbers(Watch):
    """Operations that give the same values in another type."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if result is not args[0] and _follows(recorder, func, args[0]):
            source, copy = recorder.storages.entry(args[0]), recorder.storages.entry(result)
            recorder.note(Did.COPY, copy, source, func)
            recorder.copied(source, copy)


class Move(Watch):
    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        if is_wrapper(args[0]):
            recorder.wrappers.met(args[0])
        return recorder.storages.entries(args[0])

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if result is args[0]:
            if before and asks_device(func, args, kwargs) and not recorder.often(Did.ASKED, func):
                recorder.note(Did.ASKED, before[0], op=func)
            return
        after = recorder.storages.entries(result)
        if len(before) != len(after):
            before = [before[0] if before else None] * len(after)
        for old, new in zip(before, after, strict=True):
            if old is None:
                recorder.note(Did.CREATE, new, op=func)
            elif old.device != new.device or func is Tensor.pin_memory:
                facts = {"non_blocking": True} if is_non_blocking(func, args, kwargs) else None
                recorder.note(Did.MOVE, new, old, func, facts)
            elif old.name and new is not old:
                recorder.note(Did.COPY, new, old, func)
            recorder.copied(old, new)
        if not (type(result) in PLAIN and type(args[0]) in PLAIN):
            _tell_wrappers(recorder, func, args, kwargs, result)
        if not recorder.alert:  # a move may give a reason to look, and takes none away
            recorder.changed()


def _tell_wrappers(recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, result: Any) -> None:
    if is_wrapper(result):
        recorder.wrappers.met(result)
        recorder.wrappers.moved(func, args[0], result)
    elif is_wrapper(args[0]) and moves_only(func, args, kwargs):
        recorder.wrappers.answered(func, args[0], result, {"device": result.device})


def moves_only(func: Any, args: Args, kwargs: Kwargs) -> bool:
    """Another device was asked for and no other type of numbers, for which values are enough."""
    dtypes = any(isinstance(each, torch.dtype) for each in (*args, *kwargs.values()))
    return asks_device(func, args, kwargs) and not dtypes


def asks_device(func: Any, args: Args, kwargs: Kwargs) -> bool:
    if func is not TO:
        return True
    return "device" in kwargs or any(isinstance(a, (str, torch.device, int)) for a in args[1:2])


def is_non_blocking(func: Any, args: Args, kwargs: Kwargs) -> bool:
    if kwargs and kwargs.get("non_blocking"):
        return True
    return func is TO and len(args) > 2 and any(each is True for each in args)


MOVES = Move()


class StandIn(Watch):
    """A function that stands where torch has one of its own: what is told is told of torch's."""

    def __init__(self, original: Any) -> None:
        self._original, self._watch = original, WATCHED[original]
        self.looks_before = self._watch.looks_before

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return self._watch.before(recorder, self._original, args, kwargs)

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        self._watch.after(recorder, self._original, args, kwargs, before, result)


class Copy(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        source = args[1] if len(args) > 1 else kwargs.get("src", kwargs.get("other"))
        if same_memory(args):
            recorder.self_averages.wrote(func, args[0])
        target = recorder.storages.entry(args[0])
        origin = recorder.storages.entry(source)
        if target is None or origin is None:
            return
        without_values = recorder.fresh_memory.some and recorder.fresh_memory.is_fresh(origin)
        if target.device != origin.device or target.name or origin.name or without_values:
            facts = {"non_blocking": True} if kwargs.get("non_blocking") else None
            recorder.note(Did.COPY, target, origin, func, facts)
        if type(args[0]) is Parameter and recorder.loads.gave_to(source):
            _tell_spread(recorder, func, args[0], source, target)
        recorder.loads.wrote(target, origin)
        recorder.meta_writes.wrote(args[0])
        if recorder.unread_loads.some:
            recorder.unread_loads.taken(origin.number)
        recorder.fresh_memory.copied(origin, target)


def _tell_spread(recorder: Recorder, func: Any, weight: Any, source: Any, target: Any) -> None:
    """Several numbers of a file that fill more of them, as broadcasting lets them."""
    here, there = weight.shape, source.shape
    if 1 < there.numel() < here.numel():
        facts = {
            "spread over": [list(there), list(here)],
            "file": recorder.loads.file_of([source]),
        }
        recorder.note(Did.HOOK, target, op=func, facts=facts)


class DataSwap(Watch):
    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return recorder.storages.entry(args[0])

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if is_wrapper(args[0]):
            recorder.wrappers.given_data(func, args[0], args[1])
        recorder.swapped(before, recorder.storages.entry(args[0]), func)
        recorder.fresh_memory.held(args[0])


class Resize(Watch):
    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return nbytes(args[0])

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        after = nbytes(args[0])
        entry = recorder.storages.entry(args[0])
        if entry is not None and before is not None and before != after:
            recorder.note(Did.RESIZE, entry, op=func, facts={"before": before, "after": after})
            if after is not None and after > before:
                looks = LOOKS_FOR_A_MODULE if entry.name else LOOKS_FOR_A_TENSOR
                recorder.fresh_memory.grown(entry, before, looks, nbytes=after)


def nbytes(tensor: Any) -> int | None:
    with torch._C.DisableTorchFunction(), suppress(RuntimeError, NotImplementedError):
        return int(tensor.untyped_storage().nbytes())
    return None


class Share(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        entry = recorder.storages.entry(args[0])
        if entry is not None and not recorder.often(Did.ALIAS, func):
            recorder.note(Did.ALIAS, entry, op=func)


class Address(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        recorder.wrappers.address(func, args[0], result)


class GivesStorage(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        recorder.wrappers.storage(func, args[0], result)


GIVES_STORAGE = GivesStorage()


class Cuts(Watch):
    """Operations whose result has no graph."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if has_graph(args[0]):
            recorder.cut_graphs.cut(func, args[0])


CUTS = Cuts()


def has_graph(tensor: Any) -> bool:
    return type(tensor) in PLAIN and tensor.requires_grad and not tensor.is_leaf


def _with_graph(data: Any) -> Any:
    """The tensor that values are taken from, or one of those in a list."""
    several = data[:LOOKED_AT] if type(data) in (list, tuple) else (data,)
    return next((each for each in several if has_graph(each)), None)


class Averages(Watch):
    """Operations that bring one tensor nearer to another."""

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        if func is not Tensor.add_ or "alpha" in kwargs:
            recorder.self_averages.wrote(func, args[0])


AVERAGES = Averages()


class InPlace(Watch):
    """Operations that change a tensor which the backward pass may need as it was."""

    looks_before = True

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        recorder.meta_writes.wrote(args[0])
        if has_graph(args[0]):
            recorder.refused_backward.changing(func, args[0])


IN_PLACE = InPlace()


class Freezes(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        tensor = args[0]
        if type(tensor) in PLAIN and tensor.is_leaf and not tensor.requires_grad:
            recorder.cut_graphs.froze(tensor)


class Switches(Watch):
    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        recorder.cut_graphs.switched(bool(args[0]))


SWITCHES = Switches()


def _table() -> dict[Any, Watch]:
    made: dict[Any, Watch] = {}

    def watch(kind: Watch, owner: Any, names: str) -> None:
        for name in names.split():
            if (func := getattr(owner, name, None)) is not None:
                made[func] = kind

    watch(
        Creation(),
        torch,
        "tensor as_tensor asarray scalar_tensor zeros ones full empty empty_strided empty_permuted"
        " rand randn randint randperm arange linspace logspace eye tril_indices triu_indices range"
        " complex polar normal empty_like zeros_like ones_like full_like rand_like randn_like",
    )
    watch(Creation(), Tensor, "new_empty new_empty_strided new_zeros new_ones new_full new_tensor")
    watch(SameType(), Tensor, "clone contiguous")
    watch(SameType(), torch, "clone")
    watch(SHARES, Tensor, "detach")
    watch(SHARES, torch, "detach")
    watch(MOVES, TensorBase, "to cpu cuda xpu mtia ipu type pin_memory")
    watch(OtherNumbers(), Tensor, "half float double bfloat16")
    watch(Copy(), Tensor, "copy_")
    made[TensorBase.data.__set__] = DataSwap()
    watch(Resize(), Tensor, "resize_ resize_as_")
    watch(Share(), Tensor, "share_memory_")
    watch(Address(), Tensor, "data_ptr")
    watch(GIVES_STORAGE, Tensor, "untyped_storage")
    watch(
        CUTS,
        Tensor,
        "item tolist numpy __float__ __int__ __array__ argmax argmin argsort long int bool short"
        " gt ge lt le eq ne __gt__ __ge__ __lt__ __le__ __eq__ __ne__",
    )
    watch(AVERAGES, Tensor, "lerp_ add_")
    watch(
        IN_PLACE,
        Tensor,
        "__iadd__ __isub__ __imul__ __itruediv__ __ipow__ __setitem__ sub_ mul_ div_ pow_ clamp_"
        " relu_ sigmoid_ tanh_ exp_ sqrt_ masked_fill_ zero_ fill_",
    )
    watch(IN_PLACE, torch, "relu_ sigmoid_ tanh_ clamp_")
    watch(CUTS, torch, "argmax argmin argsort gt ge lt le eq ne")
    made[TensorBase.data.__get__] = CUTS
    watch(Freezes(), TensorBase, "requires_grad_")
    made[TensorBase.requires_grad.__set__] = made[TensorBase.requires_grad_]
    watch(SWITCHES, torch._C, "_set_grad_enabled")
    return made


COPIES = {
    torch.clone, Tensor.clone, Tensor.half, Tensor.float, Tensor.double, Tensor.bfloat16,
}  # fmt: skip
COPIES_VALUES, LOOKED_AT = {torch.tensor}, 8
LEAVES_UNWRITTEN = {
    torch.empty, torch.empty_strided, torch.empty_like, torch.empty_permuted,
    Tensor.new_empty, Tensor.new_empty_strided,
}  # fmt: skip
WATCHED: dict[Any, Watch] = _table()
