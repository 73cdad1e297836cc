from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.batches.bound_together import names_bound, without_counter
from tensortrail.rules.shared.conditions import are_exclusive
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, given
from tensortrail.rules.shared.prepared import is_prepared
from tensortrail.rules.view import FunctionNode

_MOVES = TO_DEVICE | {"send_to_device", "_prepare_inputs", "recursively_apply"}
_AROUND = ("enumerate", "tqdm", "trange", "iter", "islice")
_LOADER = "torch.utils.data.DataLoader"


class Prepared(NamedTuple):
    """A call of `accelerator.prepare`."""

    call: ast.Call
    given: frozenset[str]
    """The text of each argument."""
    names: frozenset[str]
    """What the results are bound to."""


class LoaderNotPrepared(Rule):
    """A model is prepared by accelerate, and a loader of its batches is not.

    ## What it does
    Reports a loop over a `DataLoader` that the same function makes and does not give to
    `accelerator.prepare`, if the loop passes its batches to a prepared model and moves nothing.

    Not reported: a loader that is put into a mapping or an object, and an `Accelerator` that does
    not move anything (`device_placement=False`, `cpu=True`).

    ## Why is this bad?
    The first call on a GPU raises "Expected all tensors to be on the same device": `prepare` moves
    the model, and batches only of the loaders it was given. With several processes, each one also
    reads all of the data.

    ## Fix safety
    No fix is offered: a prepared loader is split between the processes, and metrics then have to be
    gathered (`accelerator.gather_for_metrics`).

    ## References
    - huggingface/accelerate documentation "Migrating your code to Accelerate"
    """

    code = "DEV617"
    name = "loader-not-prepared"
    severity = Severity.WARNING
    confidence = Confidence.HIGH
    triggers = (("Accelerator", "prepare", "DataLoader"),)

    bad = (
        Bad(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def main(model, optimizer, rows, held_out):
    accelerator = Accelerator()
    train, test = DataLoader(rows, 8), DataLoader(held_out, 8)
    model, optimizer, train = accelerator.prepare(model, optimizer, train)
    for batch in train:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
    for batch in test:
        print(model(**batch).loss)
""",
            lines=(11,),
            instead="""\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def main(model, optimizer, rows, held_out):
    accelerator = Accelerator()
    train, test = DataLoader(rows, 8), DataLoader(held_out, 8)
    model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
    for batch in train:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
    for batch in test:
        print(model(**batch).loss)
""",
        ),
        Bad(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader
from tqdm import tqdm

accelerator = Accelerator()
net = accelerator.prepare(make())
loader = DataLoader(rows, batch_size=8)
for step, (x, y) in enumerate(tqdm(loader)):
    print(((net(x) - y) ** 2).mean())
""",
            lines=(8,),
        ),
    )
    good = (
        Good(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def main(model, held_out):
    accelerator = Accelerator()
    test = DataLoader(held_out, 8)
    model = accelerator.prepare(model)
    for batch in test:
        batch = {key: value.to(accelerator.device) for key, value in batch.items()}
        print(model(**batch).loss)
"""
        ),
        Good(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def main(model, held_out):
    accelerator = Accelerator()
    test = DataLoader(held_out, 8)
    model = accelerator.prepare(model)
    test = accelerator.prepare_data_loader(test)
    for batch in test:
        print(model(**batch).loss)
"""
        ),
        Good(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def main(model, other, held_out):
    accelerator = Accelerator(cpu=True)
    test = DataLoader(held_out, 8)
    model = accelerator.prepare(model)
    for x in test:
        print(model(x))
"""
        ),
        Good(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def main(model, count, held_out):
    accelerator = Accelerator()
    test = DataLoader(held_out, 8)
    model = accelerator.prepare(model)
    for x, y in test:
        count(y)
"""
        ),
        Good(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def main(pipe, texts, by_itself):
    accelerator = Accelerator()
    if by_itself:
        pipe = accelerator.prepare(pipe)
        return pipe(texts)
    else:
        loader = DataLoader(texts, 8)
        pipe.model = accelerator.prepare(pipe.model)
        for batch in loader:
            print(pipe(batch["text"]))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        scopes = dict.fromkeys(module.function_of(each) for each in module.calls("prepare"))
        for scope in scopes:
            prepared = list(_prepared(module, scope))
            for loop in module.nodes(ast.For, scope) if prepared else ():
                if module.function_of(loop) is scope:
                    yield from self._found(module, loop, prepared)

    def _found(self, module: Module, loop: ast.For, prepared: list[Prepared]) -> Iterator[Finding]:
        loader = _loader(module, loop.iter)
        made = _made(module, loader) if loader is not None else None
        if loader is None or made is None or _is_prepared(module, loader.id, prepared):
            return
        before = [each for each in prepared if not are_exclusive(module, each.call, loop)]
        models = {name: each for each in before for name in each.names}
        for call in module.nodes(ast.Call, loop):
            name = module.text(call.func)
            if name in models and _takes(call, loop) and not _moves(module, loop):
                yield self.finding(
                    module,
                    loop.iter,
                    f"`{loader.id}` is not given to `prepare`: its batches stay on the CPU, and "
                    f"line {call.lineno} passes them to `{name}`, which `prepare` has moved",
                    trail=[(made, "made here"), (models[name].call, f"`{name}` is prepared")],
                )
                return


def _prepared(module: Module, scope: FunctionNode | None) -> Iterator[Prepared]:
    for call in module.calls("prepare", inside=scope):
        if module.function_of(call) is not scope or not is_prepared(module, call):
            continue
        if _leaves_devices(module, call):
            continue
        statement = module.statement_of(call)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        names = [each for target in targets for each in names_bound(target)]
        yield Prepared(call, frozenset(map(module.text, given(call))), frozenset(names))


def _leaves_devices(module: Module, prepare: ast.Call) -> bool:
    """The call, or its accelerator, says something of devices."""
    assert isinstance(prepare.func, ast.Attribute)
    made = module.value_of(prepare.func.value).origins
    calls = [each for each in (prepare, *made) if isinstance(each, ast.Call)]
    said = {keyword.arg for call in calls for keyword in call.keywords}
    return bool(said & {None, "device_placement", "cpu"})


def _loader(module: Module, over: ast.expr) -> ast.Name | None:
    """`loader` of `enumerate(tqdm(loader))`."""
    while isinstance(over, ast.Call) and over.args:
        if module.qualified(over.func).rpartition(".")[2] not in _AROUND:
            return None
        over = over.args[0]
    return over if isinstance(over, ast.Name) else None


def _made(module: Module, loader: ast.Name) -> ast.Call | None:
    """The call that makes it, if it is made in one place only."""
    origins = module.value_of(loader).origins
    first = origins[0] if len(origins) == 1 else None
    is_loader = isinstance(first, ast.Call) and module.qualified(first.func) == _LOADER
    return first if is_loader and isinstance(first, ast.Call) else None


def _is_prepared(module: Module, loader: str, prepared: list[Prepared]) -> bool:
    """It, or something that it was put into, was given to accelerate."""
    if any(loader in each.given or loader in each.names for each in prepared):
        return True
    return any(
        called(call).startswith("prepare") and loader in map(module.text, given(call))
        for call in module.nodes(ast.Call)
    )


def _takes(call: ast.Call, loop: ast.For) -> bool:
    """What the loader gives, or a part of it."""
    names = set(names_bound(without_counter(loop)))
    arguments = (*call.args, *(each.value for each in call.keywords))
    inside = (node for each in arguments for node in ast.walk(each))
    return any(isinstance(node, ast.Name) and node.id in names for node in inside)


def _moves(module: Module, loop: ast.For) -> bool:
    return any(called(each) in _MOVES for each in module.nodes(ast.Call, loop))
