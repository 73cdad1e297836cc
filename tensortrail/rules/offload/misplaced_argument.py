from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._fallbacks import of_another_sort
from tensortrail.rules.offload._settings import CONFIG
from tensortrail.rules.shared.callers import is_never_called
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import last_name, unpacks
from tensortrail.rules.shared.origins import behind

_ABOUT_PLACES = re.compile(r"device|offload|pin(ned)?_|memmap|mmap|non_blocking|stream|cpu|cuda")

_SORTS = {"device": "dtype", "dtype": "device"}
"""What tensors have, and the other one that may be given for it by mistake."""


class MisplacedArgument(Rule):
    """An argument about devices or offloading is passed in the place of another.

    ## What it does
    Compares the names of positional arguments with the parameters of the called function. Reports

    - a name that is a parameter of the function at another position, and is passed nowhere else;
    - an argument by position where the function takes it by name only;
    - a keyword that is given the variable of its sibling
      (`offload_param_device=offload_optimizer_device`), unless the function is known and has no
      parameter of that name;
    - a device that is given as a type (`dtype=x.device`), or a type as a device; the same of
      `first or second`, two arguments that are annotated as one and the other.

    Reported as a note: what stands in a function that no code of the project calls.

    Not reported: whole configurations and policies (OFF104).

    ## Why is this bad?
    Weights are pinned although the user switched it off, or are swapped by the settings of another
    part. Usually no error is raised: a device is truthy, and `False` is a valid device index. An
    argument that the function takes by name only raises a TypeError.

    ## Fix safety
    No fix is offered: the variable may be badly named and rightly passed.

    ## References
    - kohya-ss/musubi-tuner: `use_pinned_memory` and `device` were swapped
    - deepspeedai/DeepSpeed #3420: the optimizer's settings were used for the parameters
    """

    code = "OFF112"
    name = "misplaced-argument"
    since = "0.2.0"
    severity = Severity.ERROR
    needs_callers = True
    triggers = ("device", "offload", "mmap", "memmap", "pin_", "pinned_")

    bad = (
        Bad(
            """\
class Offloader:
    def __init__(self, blocks, device, use_pinned_memory=False):
        self.blocks = blocks

def enable(blocks, use_pinned_memory, device):
    return Offloader(blocks, use_pinned_memory, device)
""",
            lines=(6,),
            instead="""\
class Offloader:
    def __init__(self, blocks, device, use_pinned_memory=False):
        self.blocks = blocks

def enable(blocks, use_pinned_memory, device):
    return Offloader(blocks, device, use_pinned_memory)
""",
        ),
        Bad(
            """\
def load(path, dtype, device="cpu", disable_mmap=False):
    return path

def run(args, path, dtype):
    return load(path, dtype, args.disable_mmap)
""",
            lines=(5,),
        ),
        Bad(
            """\
def start(make, offload_optimizer_device):
    return make(offload_param_device=offload_optimizer_device)
""",
            lines=(2,),
        ),
        Bad(
            """\
import torch

def maps_of(q, masks):
    return torch.zeros(len(masks), q.shape[1], dtype=q.device, device=q.dtype)

def like(q, x):
    kind = x.dtype
    return q.to(device=kind)
""",
            lines=(4, 8),
        ),
        Bad(
            """\
class Model:
    def __init__(self, *, space=None, device=None):
        self.space, self.device = space, device

class Policy(Model):
    def __init__(self, space, device):
        Model.__init__(self, space, device)
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch

class Layer:
    def place(self, kept: str | torch.device = None, kind: torch.dtype = None):
        self.kept = kept or kind
        self.kind = kind or torch.float32
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

class Layer:
    def place(self, kept: str | torch.device = None, used: torch.device | None = None):
        self.kept = kept or used

    def to(self, place: torch.device | torch.dtype = None, kind: torch.dtype = None):
        return self.moved(place or kind)
"""
        ),
        Good(
            """\
def move(tensor, source_device, device):
    return tensor

def back(tensor, device):
    return move(tensor, device, device=tensor.device)
"""
        ),
        Good(
            """\
def is_of(device, device_type):
    return device == device_type

def dtype(device_type):
    return is_of(device_type, "xpu")
"""
        ),
        Good(
            """\
def copy(source, target_device):
    return source

def run(device, cpu_device):
    return copy(device, target_device=cpu_device)
"""
        ),
        Good(
            """\
def start(make, offload_optimizer_device, offload_param_device):
    return make(
        offload_param_device=offload_param_device,
        offload_optimizer_device=offload_optimizer_device,
    )
"""
        ),
        Good(
            """\
def wrap(model, apply_cpu_offload=False):
    return model if apply_cpu_offload else model.cuda()

def start(model, trainer):
    return wrap(model, apply_cpu_offload=trainer.fsdp_cpu_offload)
"""
        ),
        Good(
            """\
def context_of(owner, lengths, device):
    return owner, lengths, device

class Layer:
    def forward(self, hidden, lengths):
        return context_of(self, lengths, hidden.device)
"""
        ),
        Good(
            """\
class Base:
    def place(self, lengths, device):
        return lengths, device

class Layer(Base):
    def place(self, lengths, device):
        return Base.place(self, lengths, device)
"""
        ),
        Good(
            """\
def swap(model, weights, offloaded=None):
    return model.exchange(weights, offloaded)

def swapped(model, weights, offloaded):
    offloaded = swap(model, weights, offloaded=offloaded)
    model.run()
    swap(model, offloaded)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.nodes(ast.Call):
            yield from self._by_position(module, call)
            yield from self._by_keyword(module, call)
            yield from self._by_sort(module, call)
        for either, wanted, given in of_another_sort(module):
            first, second = map(module.text, either.values)
            yield self.finding(
                module, either, f"`{second}` is a {given}, and `{first}`, which it stands for, is a"
                f" {wanted}"
            )  # fmt: skip

    def _by_position(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        names = [last_name(each) for each in call.args]
        if unpacks(call) or not any(_ABOUT_PLACES.search(name) for name in names):
            return
        params = module.parameters_of(call)
        if names[:1] == ["self"] and _is_of_a_class(module, call.func):
            params = ("self", *params)  # `Base.__init__(self, device)`
        named = module.taken_by_name(call)
        if named and len(names) > len(params) - len(named):
            yield from self._by_name_only(module, call, len(params) - len(named), params)
            return
        keywords = {each.arg for each in call.keywords}
        for position, name in enumerate(names):
            expected = params[position] if position < len(params) else ""
            if not _ABOUT_PLACES.search(name) or expected in ("", name) or name not in params:
                continue
            if name in keywords or _is_at_home(name, names, params):
                continue
            if _is_its_answer(module, call, call.args[position]):
                continue
            if _has_a_constant(module, call, params.index(name)):
                continue  # it was thought of: only the names are alike
            what = f"`{module.text(call.func)}` has another parameter `{name}`"
            if _gets(name, names, params):
                what += f", which gets `{names[params.index(name)]}`"
            given = module.text(call.args[position])
            yield self.finding(
                module,
                call.args[position],
                f"`{given}` is passed as `{expected}`; {what}",
                severity=Severity.NOTE if _is_left_over(module, call) else None,
            )
            return

    def _by_name_only(
        self, module: Module, call: ast.Call, most: int, params: Sequence[str]
    ) -> Iterator[Finding]:
        for given in call.args[most:]:
            if last_name(given) in params[most:]:
                yield self.finding(
                    module,
                    given,
                    f"`{module.text(call.func)}` takes `{last_name(given)}` by name only: passed "
                    "by position, the call raises a TypeError",
                )
                return

    def _by_keyword(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        for each in call.keywords:
            given = last_name(each.value)
            if each.arg is None or "offload" not in each.arg or "offload" not in given:
                continue
            if CONFIG.search(each.arg) and CONFIG.search(given):
                continue
            params = module.parameters_of(call)
            if _are_siblings(each.arg, given) and (not params or given in params):
                why = (
                    "it holds the settings of another part"
                    if each.arg in params
                    else "one of the two names may be misspelled"
                )
                yield self.finding(
                    module,
                    each.value,
                    f"`{given}` is passed as `{each.arg}`: {why}",
                    confidence=Confidence.MEDIUM,
                )

    def _by_sort(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        for each in call.keywords:
            other = _SORTS.get(each.arg or "")
            value = behind(module, each.value)
            if isinstance(value, ast.Attribute) and value.attr == other:
                yield self.finding(
                    module, each.value, f"`{module.text(value)}` is a {other}, not a {each.arg}"
                )


def _is_left_over(module: Module, call: ast.Call) -> bool:
    """It stands in a function that is imported, and that nobody calls."""
    function = outermost_function(module, call)
    return function is not None and is_never_called(module, function)


def _is_of_a_class(module: Module, called: ast.expr) -> bool:
    """`Base.__init__`, whose first argument is the object; not a function of a file, nor the
    method of an object that is made there."""
    if not isinstance(called, ast.Attribute) or isinstance(called.value, ast.Call):
        return False
    owner = module.qualified(called.value)
    return called.attr == "__init__" or module.class_facts(owner) is not None


def _is_its_answer(module: Module, call: ast.Call, given: ast.expr) -> bool:
    """`state = swap(model, new, state=state)`, and later `swap(model, state)`: the function gave it
    back, and may be meant to take it in another place."""
    made = (each.func for each in module.value_of(given).origins if isinstance(each, ast.Call))
    return any(module.text(each) == module.text(call.func) for each in made)


def _is_at_home(name: str, names: Sequence[str], params: Sequence[str]) -> bool:
    """It is also passed where it belongs."""
    at = params.index(name)
    return at < len(names) and names[at] == name


def _has_a_constant(module: Module, call: ast.Call, position: int) -> bool:
    given = call.args[position] if position < len(call.args) else None
    return given is not None and isinstance(module.value_of(given).constant, (str, int))


def _gets(name: str, names: Sequence[str], params: Sequence[str]) -> bool:
    at = params.index(name)
    return at < len(names) and bool(names[at])


def _are_siblings(expected: str, given: str) -> bool:
    """`offload_param_config` and `offload_optimizer_config`: one word of three differs."""
    left, right = expected.split("_"), given.split("_")
    differing = sum(a != b for a, b in zip(left, right, strict=False))
    return len(left) == len(right) >= 3 and differing == 1
