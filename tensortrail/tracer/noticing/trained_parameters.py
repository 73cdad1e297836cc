"""Parameters that get gradients and are in no optimizer, as the optimizer was made before them."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from torch._C import DisableTorchFunction
from torch.nn import Module, Parameter
from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.call_stacks import Line, places, user_lines
from tensortrail.tracer.identity.hidden_modules import hidden
from tensortrail.tracer.identity.inner_tensors import is_wrapper
from tensortrail.tracer.identity.module_tensors import parts
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.notes import Notes

MOST_TOLD, MOST_GROUPS, MOST_PUT = 50, 2000, 100_000
Weights = dict[str, Parameter]


@dataclass
class Known:
    """A model, as it was when an optimizer was made of its parameters."""

    model: weakref.ref[Module]
    kind: type
    name: str
    before: dict[str, int]
    """The identity of each parameter, by its path."""


@dataclass
class Made:
    """An optimizer."""

    optimizer: weakref.ref[Optimizer]
    place: Place | None
    models: list[Known] = field(default_factory=list)
    steps: int = 0


@dataclass
class Untrained:
    entry: Entry
    version: int
    site: int
    """Of the step that passed it by."""
    op: str
    facts: dict[str, Any]
    by_hand: bool = False
    """The program writes it by itself."""


class TrainedParameters:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._made: dict[int, Made] = {}
        self._untrained: dict[int, Untrained] = {}
        self._groups = 0
        self._put: MutableMapping[Any, tuple[Line, ...]] = WeakTensorKeyDictionary()
        """Where parameters came into a model, since there is an optimizer."""
        self.told: list[list[Any]] = []
        """Where the optimizers were made that something was told of."""

    def registered(self, module: Module, name: str, parameter: Any) -> None:
        if self._made and parameter is not None and len(self._put) < MOST_PUT:
            self._put[parameter] = user_lines(sys._getframe(1))

    def given(self, optimizer: Optimizer, group: Mapping[str, Any]) -> None:
        """The optimizer has these parameters from now on."""
        self._groups += 1
        if self._groups > MOST_GROUPS:  # one for each inner loop: it is none of what is looked for
            self._made.clear()
            self._untrained.clear()
            return
        ids = {id(each) for each in group["params"]}
        for identity in ids:
            self._untrained.pop(identity, None)
        made = self._of(optimizer)
        seen = {id(each.model()) for each in made.models}
        for name, model in running_models():
            weights = _weights(model)
            if id(model) not in seen and any(id(each) in ids for each in weights.values()):
                before = {path: id(each) for path, each in weights.items()}
                made.models.append(Known(weakref.ref(model), type(model), name, before))

    def _of(self, optimizer: Optimizer) -> Made:
        made = self._made.get(id(optimizer))
        if made is None or made.optimizer() is not optimizer:
            made = Made(weakref.ref(optimizer, self._gone(id(optimizer))), self._notes.user_here())
            self._made[id(optimizer)] = made
        return made

    def _gone(self, key: int) -> Callable[[weakref.ref[Optimizer]], None]:
        def forget(ref: weakref.ref[Optimizer]) -> None:
            if (made := self._made.get(key)) is not None and made.optimizer is ref:
                del self._made[key]

        return forget

    def stepped(self, optimizer: Optimizer) -> None:
        """Its parameters were written. Looks at the first steps, and then ever more rarely."""
        made = self._made.get(id(optimizer))
        if made is None or made.optimizer() is not optimizer:
            return
        made.steps += 1
        if made.steps & (made.steps - 1):
            return
        with DisableTorchFunction():
            self._look(optimizer, made)

    def _look(self, optimizer: Optimizer, made: Made) -> None:
        held, kind = _held(optimizer), type(optimizer).__name__
        live = {id(each) for each in held if each.grad is not None}
        others: set[int] | None = None
        for known in made.models:
            for how, path, weight in (*_put_in(known, live), *_hidden(known)):
                if others is None:
                    others = self.held()
                if weight.grad is not None and id(weight) not in others:
                    self._tell(made, kind, how, known.kind, path, weight)
            for path, weight in _without_gradients(known, held):
                self._tell(made, kind, "frozen", known.kind, path, weight)

    def made_at(self, optimizer: Optimizer) -> Place | None:
        made = self._made.get(id(optimizer))
        return made.place if made is not None and made.optimizer() is optimizer else None

    def held(self) -> set[int]:
        """The identities of what the optimizers have."""
        optimizers = [each.optimizer() for each in self._made.values()]
        return {id(each) for known in optimizers if known is not None for each in _held(known)}

    def _tell(
        self, made: Made, kind: str, how: str, model: type, path: str, weight: Parameter
    ) -> None:
        before = self._untrained.get(id(weight))
        if before is not None:
            if before.version != weight._version:
                before.by_hand = True
            return
        entry = self._notes.storages.entry(weight)
        if entry is None or len(self._untrained) >= MOST_TOLD:
            return
        if not entry.name:
            self._notes.storages.name(entry, path)
        parallel = sys.modules.get("torch.nn.parallel.distributed")
        synchronized = parallel is not None and issubclass(model, parallel.DistributedDataParallel)
        facts = {
            "untrained": how,
            "model": model.__name__,
            "optimizer": kind,
            "made": list(made.place or ()),
            "synchronized": synchronized,
            "kind": type(weight).__name__,
            "put": [list(each) for each in places(self._put.get(weight, ()))],
        }
        self._untrained[id(weight)] = Untrained(
            entry, weight._version, self._notes.site_here(), f"{kind}.step", facts
        )

    def at_end(self) -> None:
        """What no optimizer was given until now."""
        for each in (each for each in self._untrained.values() if not each.by_hand):
            self.told.append(each.facts["made"])
            self._notes.note_at(each.site, Did.HOOK, each.entry, op=each.op, facts=each.facts)
        self._untrained.clear()
        self._made.clear()
        self._put.clear()


def _put_in(known: Known, live: set[int]) -> Iterator[tuple[str, str, Parameter]]:
    """The parameters that the model has now and had not then; of the one that came in its place
    where none of the old ones gets gradients any more."""
    model = known.model()
    if model is not None:
        for path, weight in _weights(model).items():
            if known.before.get(path) != id(weight) and id(weight) not in known.before.values():
                how = "replaced" if path in known.before else "added"
                yield how, f"{known.name}.{path}", weight
    if live.isdisjoint(known.before.values()):
        for name, other in running_models():
            weights = _weights(other) if type(other) is known.kind and other is not model else {}
            if weights.keys() == known.before.keys():
                yield from (("rebuilt", f"{name}.{path}", each) for path, each in weights.items())


def _without_gradients(known: Known, held: Iterable[Parameter]) -> Iterator[tuple[str, Parameter]]:
    """The quantized parameters that came in the place of some that the optimizer has, which had
    gradients, and can have none."""
    model = known.model()
    idle = {id(each) for each in held if each.requires_grad and each.grad is None}
    for path, weight in _weights(model).items() if model is not None and idle else ():
        before = known.before.get(path)
        other = before != id(weight) and is_wrapper(weight)
        if other and before in idle and not weight.requires_grad:
            yield f"{known.name}.{path}", weight


def _hidden(known: Known) -> Iterator[tuple[str, str, Parameter]]:
    """The parameters of layers in its plain lists, of which `parameters()` knows nothing."""
    model = known.model()
    for each in hidden(model, known.name) if model is not None else ():
        yield from (("hidden", f"{each.path}.{key}", w) for key, w in _weights(each.module).items())


def _held(optimizer: Optimizer) -> list[Parameter]:
    return [each for group in optimizer.param_groups for each in group["params"]]


def _weights(model: Module) -> Weights:
    return {
        f"{path}.{key}" if path else key: each
        for path, part in parts(model)
        for key, each in part._parameters.items()
        if each is not None
    }
