"""Functions and methods get wrappers, which are taken off again."""

from __future__ import annotations

import functools
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from torch.compiler import is_compiling

_MISSING = object()
Around = Callable[..., Any]


class Switch(Protocol):
    """What says whether a recording is on; read at each call, so it is an attribute."""

    active: bool


class Depth:
    """How deep a thread is in compiled code, and its mode, with the number of those below it,
    meanwhile. There the compiler looks at every new frame, also at ours: nothing may be called
    that is not called without us."""

    __slots__ = ("below", "mode", "within")

    def __init__(self) -> None:
        self.within = 0
        self.mode: Any = None
        self.below = 0


class Compiled(threading.local):
    def __init__(self) -> None:
        self.depth = Depth()


def wrapper(
    original: Any, around: Around, compiled: Compiled, always: bool, switch: Switch | None = None
) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if compiled.depth.within and not always:
            return original(*args, **kwargs)
        if switch is not None and (not switch.active or is_compiling()):
            return original(*args, **kwargs)
        try:
            return around(original, *args, **kwargs)
        except BaseException as error:
            del args, kwargs
            without_next_frame(error)
            raise

    return wrapped


def without_next_frame(error: BaseException) -> None:
    """Take the frame below the caller's out of the traceback: what is in it would stay alive."""
    if (here := error.__traceback__) is not None and here.tb_next is not None:
        here.tb_next = here.tb_next.tb_next


class Patch(NamedTuple):
    owner: Any
    name: str
    before: Any
    """`_MISSING` where the attribute was inherited: it is taken away again then."""
    ours: Any
    always: bool

    @property
    def is_on(self) -> bool:
        return vars(self.owner).get(self.name) is self.ours

    @property
    def is_off(self) -> bool:
        return vars(self.owner).get(self.name, _MISSING) is self.before

    def put(self) -> None:
        setattr(self.owner, self.name, self.ours)

    def take(self) -> None:
        if self.before is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.before)


class Patches:
    def __init__(self, switch: Switch | None = None) -> None:
        self._switch = switch
        self._all: list[Patch] = []
        self._lock = threading.Lock()
        self._pauses = 0
        self._given: set[str] = set()
        self._sought: dict[int, tuple[Any, Any, Any, bool]] = {}
        self._gathering = False
        self._originals: dict[int, Any] = {}
        self.compiled = Compiled()

    def wrap(
        self,
        owner: Any,
        name: str,
        around: Around,
        everywhere: bool = False,
        always: bool = False,
        at_any_time: bool = False,
    ) -> None:
        """Calls of `owner.name` become `around(original, *args, **kwargs)`, while a recording is
        on and nothing is traced for the compiler.

        `everywhere`: also where modules took the function by `from ... import`.
        `always`: at any time, and the wrapper stays while the compiler works.
        `at_any_time`: whether or not a recording is on."""
        original = getattr(owner, name, None)
        if original is None or (name in self._given and not always):
            return

        own = vars(owner).get(name)
        if isinstance(own, classmethod):
            original = own.__func__  # the class it is called on comes as the first argument
        switch = None if always or at_any_time else self._switch
        wrapped = wrapper(original, around, self.compiled, always, switch)
        self._originals[id(wrapped)] = self.original(original)
        kind = type(own) if isinstance(own, (classmethod, staticmethod)) else None
        self._add(owner, name, kind(wrapped) if kind else wrapped, always)
        if everywhere:
            self._sought[id(original)] = (original, owner, wrapped, always)
            if not self._gathering:
                self._take_over()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Modules are looked through once for all that is wrapped everywhere meanwhile."""
        self._gathering = True
        try:
            yield
        finally:
            self._gathering = False
            self._take_over()

    def _take_over(self) -> None:
        """Wrap what modules took by `from ... import`."""
        sought, self._sought = self._sought, {}
        for module, namespace in _namespaces_with(sought) if sought else ():
            for key, value in list(namespace.items()):
                # One function may be wrapped more than once.
                while (found := sought.get(id(value))) is not None and found[0] is value:
                    _, owner, wrapped, always = found
                    if module is not owner:
                        self._add(module, key, wrapped, always)
                    value = wrapped

    def replace(self, owner: Any, name: str, function: Any) -> None:
        """As `wrap` with `always`, by a function that does it all, where each call counts."""
        self._add(owner, name, function, True)

    def _add(self, owner: Any, name: str, ours: Any, always: bool) -> None:
        patch = Patch(owner, name, vars(owner).get(name, _MISSING), ours, always)
        patch.put()
        self._all.append(patch)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The compiler knows functions by identity, and remembers what it saw for ever."""
        with self._lock:
            self._pauses += 1
            if self._pauses == 1:
                for patch in reversed(self._all):
                    if patch.is_on and not patch.always:
                        patch.take()
        try:
            yield
        finally:
            with self._lock:
                self._pauses -= 1
                if not self._pauses:
                    for patch in self._all:
                        if patch.is_off:
                            patch.put()

    def original(self, function: Any) -> Any:
        """What we wrapped, if this is a wrapper of ours."""
        return self._originals.get(id(function), function)

    def give_way(self, names: Iterable[str]) -> None:
        """Compiled code knows the functions of these names as they are without us: leave them."""
        with self._lock:
            self._given.update(names)
            leaving = [each for each in self._all if each.name in self._given and not each.always]
            for patch in reversed(leaving):
                if patch.is_on:
                    patch.take()
            self._all = [each for each in self._all if each not in leaving]

    def forked(self) -> None:
        """A child gets a new lock: a thread that held the old one is not here to let it go."""
        self._lock = threading.Lock()

    def undo(self) -> None:
        with self._lock:
            for patch in reversed(self._all):
                if patch.is_on:  # else somebody wrapped ours; it only passes through from now on
                    patch.take()
            self._take_from_importers()
            self._all.clear()

    def _take_from_importers(self) -> None:
        """Modules imported meanwhile took wrappers by `from ... import`."""
        originals = self._originals
        taken = _held_elsewhere([each for each in self._all if id(each.ours) in originals])
        for _, namespace in _namespaces_with(taken) if taken else ():
            for key, value in list(namespace.items()):
                if id(value) in taken:
                    namespace[key] = originals[id(value)]


def _held_elsewhere(patches: Sequence[Patch]) -> set[int]:
    """The wrappers, by `id`, that more refers to than patches and the wrappers around them. Mostly
    there are none, and the modules need not be looked through."""
    alone = object()  # the name refers to it as a patch refers to its wrapper, and nothing else
    wrappers = {id(each): each for each in (*(patch.ours for patch in patches), alone)}
    # A wrapper refers to what it wraps twice: to call it, and as `__wrapped__`.
    around = (getattr(each, "__wrapped__", None) for each in wrappers.values())
    known = Counter({id(alone): 1})
    known.update(2 * [*map(id, around)])
    known.update(id(each) for patch in patches for each in (patch.ours, patch.before))
    beyond = {number: sys.getrefcount(each) - known[number] for number, each in wrappers.items()}
    return {number for number, count in beyond.items() if count > beyond[id(alone)]}


def _namespaces_with(sought: Collection[int]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The modules that have one of these objects, by `id`, under a name, each with its names."""
    wanted = frozenset(sought)
    for module in list(sys.modules.values()):
        namespace = getattr(module, "__dict__", None)
        if isinstance(namespace, dict) and not wanted.isdisjoint(map(id, namespace.values())):
            yield module, namespace
