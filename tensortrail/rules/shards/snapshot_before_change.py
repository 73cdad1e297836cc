from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shards._replaced import data_swaps, swapped_modules
from tensortrail.rules.shards._snapshots import Snapshot, snapshot_of
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, name_of, receiver, within

_MEASURES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class SnapshotBeforeChange(Rule):
    """A state dict is kept, the parameters change, and the state dict is used as if it had not.

    ## What it does
    Finds `sd = m.state_dict()` without a copy, where

    - the parameters of `m` are given other memory after it (`p.data = p.data.float()`), and `sd`
      is used then;
    - `m` is trained, or loaded from elsewhere, and `m.load_state_dict(sd)` is to bring the old
      values back, in the same function or in another method of the class.

    The same for one tensor: `saved["scale"] = meta.scale`, then `meta.scale.copy_(...)`.

    ## Why is this bad?
    A state dict holds the tensors of the model, not copies. What changes a parameter in place
    changes `sd` as well: loading it back restores nothing. What gives the parameter other memory
    leaves `sd` with the old one: it is saved or loaded with old values and an old dtype.

    ## Fix safety
    No fix is offered: a copy costs the memory of the model, and taking the state dict later may be
    what is meant.

    ## References
    - huggingface/accelerate #4021: the state dict was taken before parameters were upcast
    - pytorch/pytorch, tutorial "Saving and Loading Models"
    """

    code = "SHD411"
    name = "snapshot-before-change"
    since = "0.2.0"
    severity = Severity.ERROR
    triggers = (("state_dict()", ".data"), ("state_dict()", "load_state_dict"), ".copy_")

    bad = (
        Bad(
            """\
import torch

def prepare(model, distribute):
    values = model.state_dict()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.to(torch.float32)
    distribute(model, values)
""",
            lines=(4,),
            instead="""\
import copy

import torch

def prepare(model, distribute):
    values = copy.deepcopy(model.state_dict())
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.to(torch.float32)
    distribute(model, values)
""",
        ),
        Bad(
            """\
def fit(model, optimizer, loader):
    before = model.state_dict()
    for batch in loader:
        model(batch).backward()
        optimizer.step()
    model.load_state_dict(before)
""",
            lines=(2,),
        ),
        Bad(
            """\
class Averaged:
    def store(self):
        self.backup = self.model.state_dict()
        self.model.load_state_dict(self.average)

    def restore(self):
        self.model.load_state_dict(self.backup)
""",
            lines=(3,),
        ),
        Bad(
            """\
def swap(saved, meta, old):
    saved["scale"] = meta["forward"].scale
    meta["forward"].scale.copy_(old.popleft())
""",
            lines=(2,),
        ),
        Bad(
            """\
class Stopping:
    def __call__(self, loss, model):
        if loss < self.lowest:
            self.lowest = loss
            self.best = model.state_dict()

    def restore(self, model):
        model.load_state_dict(self.best)
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
class Pair:
    def keep(self, model):
        if model.ready:
            self.state = model.state_dict()

    def fill(self, model):
        model.load_state_dict(self.state)
"""
        ),
        Good(
            """\
import copy

class Averaged:
    def store(self):
        self.backup = copy.deepcopy(self.model.state_dict())
        self.model.load_state_dict(self.average)

    def restore(self):
        self.model.load_state_dict(self.backup)
"""
        ),
        Good(
            """\
def load_old(model, old):
    fresh = model.state_dict()
    if all(key in fresh for key in old):
        model.load_state_dict(old)
        return
    for key in fresh:
        fresh[key] = old[key.replace("post", "")]
    model.load_state_dict(fresh)
"""
        ),
        Good(
            """\
def swap(saved, meta, old):
    saved["scale"] = meta["forward"].scale.clone()
    meta["forward"].scale.copy_(old.popleft())
"""
        ),
        Good(
            """\
def point(parameter, master, values):
    parameter.data = master.data
    master.data.copy_(values)
"""
        ),
        Good(
            """\
import copy

def fit(model, optimizer, loader):
    before = copy.deepcopy(model.state_dict())
    for batch in loader:
        model(batch).backward()
        optimizer.step()
    model.load_state_dict(before)
"""
        ),
        Good(
            """\
def convert(model, rename):
    weights = model.state_dict()
    model.load_state_dict(rename(weights))
"""
        ),
        Good(
            """\
def shard(model, fully_shard):
    weights = model.state_dict()
    model = model.to("meta")
    fully_shard(model)
    model.load_state_dict(weights, assign=True)
"""
        ),
        Good(
            """\
import torch

def prepare(model, distribute):
    for name, parameter in model.named_parameters():
        parameter.data = parameter.data.to(torch.float32)
    values = model.state_dict()
    distribute(model, values)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign in module.nodes(ast.Assign):
            target = assign.targets[0]
            kept = snapshot_of(module, assign.value)
            if kept is None or len(assign.targets) > 1 or module.function_of(assign) is None:
                continue
            if isinstance(target, ast.Name):
                if not kept.by_device:
                    yield from self._swapped(module, assign, target.id, kept.owner)
                yield from self._restored(module, assign, target.id, kept)
            elif isinstance(target, ast.Attribute) and module.text(target).startswith("self."):
                yield from self._restored_later(module, assign, module.text(target), kept)

        yield from self._aliased(module)

    def _aliased(self, module: Module) -> Iterator[Finding]:
        """A tensor kept under another name, then written in place."""
        for write in module.calls("copy_"):
            source = receiver(write)
            if not isinstance(source, ast.Attribute) or source.attr in ("data", "grad"):
                continue
            kept = _kept_as(module, write, source)
            if kept is not None:
                yield self.finding(
                    module,
                    kept,
                    f"`{module.text(kept.targets[0])}` is to keep `{module.text(source)}`, and is "
                    f"the same tensor: line {write.lineno} overwrites both",
                    severity=Severity.WARNING,
                    trail=[(write, "written in place here")],
                )

    def _swapped(
        self, module: Module, assign: ast.Assign, name: str, owner: str
    ) -> Iterator[Finding]:
        function = module.function_of(assign)
        assert function is not None
        for swap in data_swaps(module, function):
            if swap.lineno <= assign.lineno or owner not in swapped_modules(module, swap):
                continue
            use = _next_use(module, swap, name)
            if use is not None:
                yield self.finding(
                    module,
                    assign,
                    f"`{name}` keeps the memory that the parameters have here; line {swap.lineno} "
                    f"gives them other memory, and line {use.lineno} uses `{name}` with the old "
                    "values and the old dtype",
                    trail=[(swap, "the parameters change here"), (use, "used here")],
                )
                return

    def _restored(
        self, module: Module, assign: ast.Assign, name: str, kept: Snapshot
    ) -> Iterator[Finding]:
        owner = kept.owner
        restores = [
            call for call in module.later(assign, ast.Call) if _loads(module, call, owner, name)
        ]
        if not restores or _is_copied(module, assign, name):
            return
        change = _change_between(module, assign, restores[0], owner)
        if change is not None:
            yield self.finding(
                module,
                assign,
                f"`{name}` holds the tensors of `{owner}` itself, not copies{kept.when}: what line "
                f"{change.lineno} changes is changed in `{name}` too, and loading it in line "
                f"{restores[0].lineno} restores nothing",
                severity=Severity.WARNING if kept.by_device else None,
                trail=[(change, "changed in place here"), (restores[0], "to be restored here")],
            )

    def _restored_later(
        self, module: Module, assign: ast.Assign, name: str, kept: Snapshot
    ) -> Iterator[Finding]:
        owner = kept.owner
        cls, function = module.class_of(assign), module.function_of(assign)
        if cls is None or _is_made_again(module, cls, owner):
            return
        is_best = _is_best_of(module, assign, owner)
        if not owner.startswith("self.") and not is_best:
            return
        for call in module.nodes(ast.Call, cls):
            into = "" if is_best else owner
            if module.function_of(call) is function or not _loads(module, call, into, name):
                continue
            if not _is_copied(module, assign, name):
                yield self.finding(
                    module,
                    assign,
                    f"`{name}` holds the tensors of `{owner}` itself, not copies{kept.when}: "
                    f"whatever changes the model in place changes it too, and line {call.lineno} "
                    "restores nothing",
                    severity=Severity.WARNING,
                    confidence=Confidence.MEDIUM,
                    trail=[(call, "to be restored here")],
                )
                return


def _kept_as(module: Module, write: ast.Call, source: ast.Attribute) -> ast.Assign | None:
    """The nearest assignment of the tensor, uncopied, to something that outlives the function."""
    text = module.text(source)
    for assign in module.earlier(write, ast.Assign):
        if module.text(assign.targets[0]) == text:
            return None
        if module.text(assign.value) == text and isinstance(assign.targets[0], ast.Subscript):
            return assign
    return None


def _loads(module: Module, call: ast.Call, owner: str, name: str) -> bool:
    """`owner.load_state_dict(name)`, of whatever owner where none is given."""
    subject, loaded = receiver(call), module.argument(call, 0, "state_dict")
    return (
        called(call) == "load_state_dict"
        and subject is not None
        and loaded is not None
        and (not owner or name_of(module, subject) == owner)
        and name in (module.text(loaded), name_of(module, loaded))
        and not any(each.arg == "assign" for each in call.keywords)
    )


def _change_between(
    module: Module, assign: ast.Assign, restore: ast.Call, owner: str
) -> ast.Call | None:
    """A call that trains the model, or loads something else into it."""
    for call in module.later(assign, ast.Call):
        if call is restore or call.lineno >= restore.lineno or call.lineno <= assign.lineno:
            continue
        if called(call) == "load_state_dict":
            subject = receiver(call)
            if subject is not None and name_of(module, subject) == owner:
                return call
        elif called(call) == "step" and _is_optimizer(module, call):
            return call
    return None


def _is_optimizer(module: Module, call: ast.Call) -> bool:
    subject = receiver(call)
    return subject is not None and "optim" in ast.unparse(subject).lower()


def _is_copied(module: Module, assign: ast.Assign, name: str) -> bool:
    """Rebound after it to something else, a copy most likely, or filled with other tensors."""
    function = module.function_of(assign)
    stores = [
        each
        for each in module.nodes(ast.Assign, function)
        if each is not assign and name in _stored(module, each)
    ]
    return any(each.lineno > assign.lineno for each in stores)


def _stored(module: Module, assign: ast.Assign) -> Iterator[str]:
    """`x` of `x = value`, and `d` of `d[key] = value` too."""
    target = assign.targets[0]
    whole = [target.value] if isinstance(target, ast.Subscript) else []
    return map(module.text, (target, *whole))


def _is_made_again(module: Module, cls: ast.ClassDef, owner: str) -> bool:
    """Some method puts another module in its place: the old values are given to that one."""
    for assign in module.nodes(ast.Assign, cls):
        function = module.function_of(assign)
        outside = function is not None and function.name != "__init__"
        if outside and module.text(assign.targets[0]) == owner:
            return True
    return False


def _is_best_of(module: Module, assign: ast.Assign, owner: str) -> bool:
    """The model is an argument, and its state is kept where a number is less or more than one."""
    function = module.function_of(assign)
    names = {each.arg for each in module.nodes(ast.arg, function)} if function else set()
    tests = (each.test for each in module.guards_of(assign))
    measured = (isinstance(e, ast.Compare) and isinstance(e.ops[0], _MEASURES) for e in tests)
    return owner in names and any(measured)


def _next_use(module: Module, after: ast.AST, name: str) -> ast.Name | None:
    uses = (each for each in module.later(after, ast.Name) if each.id == name)
    use = next((each for each in uses if not within(each, after, module)), None)
    return use if use is not None and isinstance(use.ctx, ast.Load) else None
