from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, given, receiver
from tensortrail.rules.unchanging import unchanging

_OF_A_MODEL = ("named_parameters", "parameters", "named_buffers")


class LastShardLost(Rule):
    """Weights are collected into shards, and the last shard is never stored.

    ## What it does
    Reports a loop over the items of a state dict, or over the parameters of a model, that fills a
    dict or list and, when it is full, appends or saves it and begins a new one, if nothing reads
    the last one after the loop.

    ## Why is this bad?
    The weights of the last shard are in no file: loading the checkpoint reports missing keys, or
    leaves these weights with initial values. The last shard is usually not full, so the loop does
    not store it.

    ## Fix safety
    Unsafe: the fix stores the last shard after the loop, as the loop does, and it may be empty.

    ## References
    - huggingface/huggingface_hub, `split_state_dict_into_shards_factory`
    """

    code = "SHD434"
    name = "last-shard-lost"
    severity = Severity.ERROR
    proven = False
    triggers = tuple(
        ("for ", word, put)
        for word in ("state_dict", "parameters(", "weight", "tensors")
        for put in (".append(", "save")
    )

    bad = (
        Bad(
            """\
def split(model, limit):
    shard, size, shards = {}, 0, []
    for name, weight in model.state_dict().items():
        if size + weight.numel() > limit:
            shards.append(shard)
            shard, size = {}, 0
        shard[name] = weight
        size += weight.numel()
    return shards
""",
            lines=(7,),
            fixed="""\
def split(model, limit):
    shard, size, shards = {}, 0, []
    for name, weight in model.state_dict().items():
        if size + weight.numel() > limit:
            shards.append(shard)
            shard, size = {}, 0
        shard[name] = weight
        size += weight.numel()
    shards.append(shard)
    return shards
""",
        ),
        Bad(
            """\
from safetensors.torch import save_file

def written(model, folder, most):
    part = {}
    for name, weight in model.named_parameters():
        part[name] = weight.contiguous()
        if len(part) == most:
            save_file(part, f"{folder}/{name}.safetensors")
            part = {}
""",
            lines=(6,),
            fixed="""\
from safetensors.torch import save_file

def written(model, folder, most):
    part = {}
    for name, weight in model.named_parameters():
        part[name] = weight.contiguous()
        if len(part) == most:
            save_file(part, f"{folder}/{name}.safetensors")
            part = {}
    save_file(part, f"{folder}/{name}.safetensors")
""",
        ),
    )
    good = (
        Good(
            """\
def split(model, limit):
    shard, shards = {}, []
    for name, weight in model.state_dict().items():
        if len(shard) > limit:
            shards.append(shard)
            shard = {}
        shard[name] = weight
    if shard:
        shards.append(shard)
    return shards

def first(model, limit):
    shards, shard = [], {}
    shards.append(shard)
    for name, weight in model.state_dict().items():
        if len(shard) > limit:
            shard = {}
            shards.append(shard)
        shard[name] = weight
    return shards

def each(model, shards):
    shard = {}
    for name, weight in model.state_dict().items():
        shard = {}
        shard[name] = weight
        shards.append(shard)
    return shards
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for loop in module.nodes(ast.For):
            if not _may_be_over_weights(loop):
                continue
            for filled in _put_away_when_full(module, loop):
                if not _is_over_weights(module, loop):
                    break
                if not _is_read_after(module, loop, filled.name):
                    yield self._reported(module, loop, filled)

    def _reported(self, module: Module, loop: ast.For, filled: Filled) -> Finding:
        return self.finding(
            module,
            filled.fill,
            f"`{filled.name}` may hold weights when the loop ends, and nothing stores them: line "
            f"{filled.put.lineno} does so only when it is full",
            trail=[(filled.put, "stored here"), (filled.fill, "filled here")],
            fixes=[_put_after(module, loop, filled)],
        )


@unchanging(frozen=True, slots=True)
class Filled:
    """A container that a loop fills, and empties when it is full."""

    name: str
    fill: ast.stmt
    put: ast.Call


def _may_be_over_weights(loop: ast.For) -> bool:
    over = _gone_through(loop)
    return isinstance(over, ast.Call) and called(over) in (*_OF_A_MODEL, "items")


def _is_over_weights(module: Module, loop: ast.For) -> bool:
    """`state.items()`, `model.named_parameters()`: with names and tensors of a model."""
    over = _gone_through(loop)
    if not isinstance(over, ast.Call):
        return False
    owner = receiver(over)
    if called(over) in _OF_A_MODEL or owner is None:
        return called(over) in _OF_A_MODEL
    return called(over) == "items" and module.value_of(owner).may_be(Kind.STATE_DICT)


def _gone_through(loop: ast.For) -> ast.expr:
    over = loop.iter
    if isinstance(over, ast.Call) and called(over) in ("enumerate", "sorted", "list", "tqdm"):
        return over.args[0] if over.args else over
    return over


def _put_away_when_full(module: Module, loop: ast.For) -> Iterator[Filled]:
    for branch in module.nodes(ast.If, loop):
        for name, put in _emptied(module, branch):
            fill = _filled(module, loop, branch, name)
            if fill is not None:
                yield Filled(name, fill, put)


def _emptied(module: Module, branch: ast.If) -> Iterator[tuple[str, ast.Call]]:
    """Names that the branch passes to a call, and binds to an empty container after it."""
    for position, statement in enumerate(branch.body):
        names = set(_bound_to_nothing(statement))
        for earlier in branch.body[:position]:
            call = earlier.value if isinstance(earlier, ast.Expr) else None
            if isinstance(call, ast.Call):
                for each in given(call):
                    if isinstance(each, ast.Name) and each.id in names:
                        yield each.id, call


def _bound_to_nothing(statement: ast.stmt) -> Iterator[str]:
    """`part` of `part = {}` and of `part, size = {}, 0`."""
    if not isinstance(statement, ast.Assign):
        return
    target, value = statement.targets[0], statement.value
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    values = value.elts if isinstance(value, ast.Tuple) else [value]
    for one, other in zip(targets, values, strict=False):
        if isinstance(one, ast.Name) and ast.unparse(other) in ("{}", "[]", "dict()", "list()"):
            yield one.id


def _filled(module: Module, loop: ast.For, branch: ast.If, name: str) -> ast.stmt | None:
    """The statement of the loop, outside of the branch, that puts something into it."""
    inside = {id(each) for each in ast.walk(branch)}
    for assign in (*module.nodes(ast.Assign, loop),):
        target = assign.targets[0]
        is_item = isinstance(target, ast.Subscript) and module.text(target.value) == name
        if is_item and id(assign) not in inside:
            return assign
    for call in module.calls("append", "update", inside=loop):
        owner = receiver(call)
        if owner is not None and module.text(owner) == name and id(call) not in inside:
            return module.statement_of(call)
    return None


def _is_read_after(module: Module, loop: ast.For, name: str) -> bool:
    """Something behind the loop, or its `else`, uses the container."""
    inside = {id(each) for part in loop.body for each in ast.walk(part)}
    function = module.function_of(loop)
    return any(
        each.id == name and id(each) not in inside and module.function_of(each) is function
        for each in module.later(loop, ast.Name)
    )


def _put_after(module: Module, loop: ast.For, filled: Filled) -> Fix | None:
    text = f"\n{' ' * loop.col_offset}{module.text(filled.put)}"
    edit = module.insert_after(loop.body[-1], text)
    return module.fix("store the last one too", Safety.UNSAFE, edit)
