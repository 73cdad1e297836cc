"""The function mode of a rehearsal knows what Python asks for."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter, methodcaller
from typing import Any

import torch
from torch import Tensor
from torch._C import _get_dispatch_mode
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from tensortrail.tracer.rehearsal.compiler import stand_ins
from tensortrail.tracer.rehearsal.devices import random_numbers
from tensortrail.tracer.rehearsal.lacks import NotRehearsed
from tensortrail.tracer.rehearsal.operations import cpp_checks, fourier
from tensortrail.tracer.rehearsal.operations.asked_moves import CUDA, OURS, TO, moved, to_cuda
from tensortrail.tracer.rehearsal.operations.simulation import Simulation, plain_data
from tensortrail.tracer.rehearsal.tensor import autograd_tensors, legacy_types, wrapper_subclasses
from tensortrail.tracer.rehearsal.tensor.answers import ANSWERS
from tensortrail.tracer.rehearsal.tensor.moved_in_place import LAZY, SUCCESSOR
from tensortrail.tracer.rehearsal.tensor.simulated import SimSubclass, SimTensor, is_plain

UNSHAPED: Any = vars(torch.nn.parameter)["UninitializedTensorMixin"]
"""Parameters without a shape yet; torch's stubs do not know them."""
FROM_VALUES = (
    Tensor.new_tensor, torch.sparse_coo_tensor, torch.sparse_compressed_tensor,
    torch.sparse_csr_tensor, torch.sparse_csc_tensor, torch.sparse_bsr_tensor,
    torch.sparse_bsc_tensor,
)  # fmt: skip
ASKED_OF_TRANSFORMED: dict[Any, Callable[[Any], Any]] = {
    **{getattr(Tensor, name).__get__: attrgetter(name) for name in ("device", "is_cuda", "is_cpu")},
    Tensor.get_device: methodcaller("get_device"),
}
FAKING = torch._C._TorchDispatchModeKey.FAKE


class AskMode(TorchFunctionMode):  # type: ignore[misc]
    """Gives devices their index, and answers what never reaches the dispatcher."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation
        self._special = {
            **cpp_checks.CHECKS,
            **dict.fromkeys(fourier.TRANSFORMS, fourier.transform),
            TO: self._to,
            CUDA: self._cuda,
            Tensor.to: self._to,  # what stands there now: C++ finds it by name
            Tensor.cuda: self._cuda,
            Tensor.cpu: self._cpu,
            Tensor.type: self._type,
            Tensor.type_as: self._type_as,
            plain_data.__set__: self._set_data,
            torch._has_compatible_shallow_copy_type: self._compatible,
            Tensor.numpy: self._host_read,
            Tensor.tolist: self._host_read,
            torch.tensor: self._factory,
            torch.as_tensor: self._factory,
            torch.asarray: self._factory,
            torch.device: self._device,
            Tensor.new: self._new,
            Tensor.grad.__get__: self._gradient,
            **dict.fromkeys(FROM_VALUES, legacy_types.from_values),
            torch._C._nn._parse_to: self._parse_to,
            **dict.fromkeys(ASKED_OF_TRANSFORMED, self._asked),
        }

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if args and isinstance(args[0], SimTensor) and func in ANSWERS:
            if isinstance(args[0], SimSubclass):
                return type(args[0]).__torch_function__(func, (type(args[0]),), args, kwargs)
            return ANSWERS[func](*args, **(kwargs or {}))
        if _get_dispatch_mode(FAKING) is not None:
            return stand_ins.run(func, args, kwargs or {})
        special = self._special.get(func)
        if special is not None:
            return special(func, args, kwargs or {})
        if not kwargs:
            return self._simulation.called(func, args, {})
        device = kwargs.get("device")
        if kwargs.get("generator") is not None:
            random_numbers.check(func, args, kwargs)
        if device is None:
            return self._simulation.called(func, args, kwargs)
        _, kwargs = self._simulation.plain_devices((), kwargs)
        if args and isinstance(args[0], SimTensor) and torch.device(device).type == "cpu":
            args = (args[0].inner, *args[1:])
        return func(*args, **kwargs)

    def _to(self, func: Any, args: Any, kwargs: Any) -> Any:
        return moved(self._simulation, TO, args, kwargs)

    def _cuda(self, func: Any, args: Any, kwargs: Any) -> Any:
        return to_cuda(self._simulation, args, kwargs)

    def _cpu(self, func: Any, args: Any, kwargs: Any) -> Any:
        tensor = args[0]
        wrapped = type(tensor) not in OURS and wrapper_subclasses.home(tensor) is not None
        there = wrapped or isinstance(autograd_tensors.inside(tensor), SimTensor)
        return tensor.to("cpu") if there else func(*args, **kwargs)

    def _type(self, func: Any, args: Any, kwargs: Any) -> Any:
        dtype = kwargs.get("dtype", args[1] if len(args) > 1 else None)
        if isinstance(args[0], SimTensor) or "cuda" in str(dtype):
            return self._simulation.typed(args[0], dtype, False)
        return func(*args, **kwargs)

    def _type_as(self, func: Any, args: Any, kwargs: Any) -> Any:
        other = kwargs.get("other", args[1] if len(args) > 1 else None)
        if isinstance(other, SimTensor):
            return moved(self._simulation, TO, (args[0], other.device, other.dtype), {})
        return func(*args, **kwargs)

    def _set_data(self, func: Any, args: Any, kwargs: Any) -> Any:
        ANSWERS[func](*args)

    def _compatible(self, func: Any, args: Any, kwargs: Any) -> Any:
        if any(isinstance(each, SimTensor) for each in args):
            if isinstance(args[0], UNSHAPED):
                raise NotRehearsed(LAZY)
            if not isinstance(args[0], Parameter):
                return False  # a gradient: C++ holds it, and it cannot become another
            return all(isinstance(each, SimTensor) or is_plain(type(each)) for each in args)
        home = wrapper_subclasses.home
        if type(args[0]) not in OURS and home(args[0]) != home(args[1]):
            return False
        return func(*args, **kwargs)

    def _asked(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What `grad` and `vmap` put around a tensor lies where the tensor does."""
        within = autograd_tensors.inside(args[0])
        return ASKED_OF_TRANSFORMED[func](within if isinstance(within, SimTensor) else args[0])

    def _device(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A number alone means the accelerator, and C++ knows of none."""
        number = args[0] if len(args) == 1 and not kwargs else None
        return torch.device("cuda", number) if type(number) is int else func(*args, **kwargs)

    def _parse_to(self, func: Any, args: Any, kwargs: Any) -> Any:
        """A device without a number has none in what is parsed either."""
        args, kwargs = self._simulation.numbered(args, kwargs)
        return func(*args, **kwargs)

    def _gradient(self, func: Any, args: Any, kwargs: Any) -> Any:
        found = func(*args)
        successor = vars(found).get(SUCCESSOR) if found is not None else None
        if successor is not None:
            args[0].grad = found = successor
        return found

    def _new(self, func: Any, args: Any, kwargs: Any) -> Any:
        if not isinstance(args[0], SimTensor):
            return func(*args, **kwargs)
        # A `torch.Size` has to stay one: other tuples are taken for values.
        rest = [each.inner if isinstance(each, SimTensor) else each for each in args[1:]]
        return self._simulation.moved(func(args[0].inner, *rest), args[0].index)

    def _host_read(self, func: Any, args: Any, kwargs: Any) -> Any:
        self._simulation.pending.host_read(func, args[0])
        return func(*args, **kwargs)

    def _factory(self, func: Any, args: Any, kwargs: Any) -> Any:
        """`torch.tensor(data, device="cuda")` copies in C++, past the dispatcher."""
        device = kwargs.get("device")
        device = legacy_types.default_device() if device is None else device
        data = args[0] if args else kwargs.get("data", kwargs.get("obj"))
        if isinstance(data, SimTensor):
            return self._from_simulated(func, data, kwargs)
        index = self._simulation.index_of(device) if device is not None else None
        if index is None and kwargs.get("pin_memory"):
            return self._simulation.pinned.hold(func(*args, **{**kwargs, "pin_memory": False}))
        if index is None:
            return func(*args, **kwargs)
        rest = dict(kwargs)
        wants_grad = rest.pop("requires_grad", False)
        made = self._simulation.moved(legacy_types.made_on_host(func, args, rest), index)
        return made.requires_grad_(wants_grad)

    def _from_simulated(self, func: Any, data: SimTensor, kwargs: Any) -> Any:
        device = kwargs.get("device") or data.device
        copied = data if func is torch.as_tensor else data.detach().clone()
        return copied.to(device, kwargs.get("dtype") or data.dtype)
