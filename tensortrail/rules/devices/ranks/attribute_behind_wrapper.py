from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.behind_prepare import read_behind_prepare
from tensortrail.rules.devices.shared.modules.own_names import own_names
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.losses import is_trained_on
from tensortrail.rules.shared.objects import given, is_before, is_constant, within
from tensortrail.rules.shared.parallel_wrappers import AVERAGING, COPYING

_WRAPPERS = (*COPYING, *AVERAGING)


class AttributeBehindWrapper(Rule):
    """A method or attribute of a model is looked up on the wrapper around it.

    ## What it does
    Reports `model.encode(x)` where the same function puts an object of a class of this project
    into a `DataParallel` or `DistributedDataParallel` called `model`, and `encode` is a method or
    attribute of that class, not of every `nn.Module`. Also reports `self.model.steps` of a model
    that `accelerator.prepare` returned, if the file calls `unwrap_model` on it elsewhere.

    ## Why is this bad?
    The program ends: `AttributeError: 'DataParallel' object has no attribute 'encode'`. The wrapper
    has `forward` and what every module has; the model is its attribute `module`.

    ## Fix safety
    Unsafe: what is called on `model.module` runs on one GPU, and its gradients are not averaged. No
    fix is offered for a `DistributedDataParallel` whose loss would be computed so.

    ## References
    - pytorch documentation of `torch.nn.DataParallel`
    - pytorch/pytorch#16885
    """

    code = "DEV626"
    name = "attribute-behind-wrapper"
    severity = Severity.ERROR
    proven = False
    triggers = ("DataParallel", ("prepare(", "unwrap_model"))

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2)

    def encode(self, x):
        return self.enc(x)

    def forward(self, x):
        return self.encode(x)

def codes(x):
    model = Coder().cuda()
    model = nn.DataParallel(model)
    return model.encode(x)
""",
            lines=(18,),
            fixed="""\
import torch
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2)

    def encode(self, x):
        return self.enc(x)

    def forward(self, x):
        return self.encode(x)

def codes(x):
    model = Coder().cuda()
    model = nn.DataParallel(model)
    return model.module.encode(x)
""",
        ),
        Bad(
            """\
from torch import nn
from torch.nn.parallel import DistributedDataParallel

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2)

    def losses(self, x):
        return self.enc(x).pow(2)

    def forward(self, x):
        return self.enc(x)

def train(loader, rank, optimizer):
    model = DistributedDataParallel(Coder().to(rank), device_ids=[rank])
    for x in loader:
        loss = model.losses(x).mean()
        loss.backward()
        optimizer.step()
""",
            lines=(18,),
        ),
        Bad(
            """\
from accelerate import Accelerator
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2)
        self.steps = 4

    def forward(self, x):
        return self.enc(x)

class Trainer:
    def __init__(self, model: Coder, optimizer):
        self.accelerator = Accelerator()
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)

    def train(self, x):
        for _ in range(self.model.steps):
            self.model(x).sum().backward()

    def weights(self):
        return self.accelerator.unwrap_model(self.model).state_dict()
""",
            lines=(19,),
        ),
    )
    good = (
        Good(
            """\
from accelerate import Accelerator
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2)
        self.steps = 4

    def forward(self, x):
        return self.enc(x)

class Trainer:
    def __init__(self, model: Coder, optimizer):
        self.accelerator = Accelerator()
        self.model, self.steps = model, model.steps
        self.model, self.optimizer = self.accelerator.prepare(self.model, optimizer)

    def train(self, x):
        self.model.train()
        for _ in range(self.steps):
            self.model(x).sum().backward()

    def weights(self):
        return self.accelerator.unwrap_model(self.model).enc.weight
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2)

    def encode(self, x):
        return self.enc(x)

    def forward(self, x):
        return self.encode(x)

def codes(x, gpus):
    model = Coder().cuda()
    first = model.encode(x)
    wrapped = nn.DataParallel(model)
    if gpus > 1:
        model = wrapped
    return wrapped.module.encode(x), wrapped.parameters(), model.encode(x), first
"""
        ),
        Good(
            """\
from torch import nn

class Parallel(nn.DataParallel):
    def encode(self, x):
        return self.module.encode(x)

class Coder(nn.Module):
    def encode(self, x):
        return x

def codes(x):
    model = Parallel(Coder())
    return model.encode(x)
"""
        ),
        Good(
            """\
from torch import nn

class Coder(nn.Module):
    def encode(self, x):
        return x

def codes(x):
    model = nn.DataParallel(Coder())
    model.encode = model.module.encode
    return model.encode(x)
"""
        ),
        Good(
            """\
from accelerate import Accelerator
from torch import nn

class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 2)
        self.steps = 4

    def forward(self, x):
        return self.enc(x)

class Trainer:
    def __init__(self, model: Coder, optimizer):
        self.accelerator = Accelerator()
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)

    def train(self, x):
        if isinstance(self.model, nn.parallel.DistributedDataParallel):
            steps = self.model.module.steps
        else:
            steps = self.model.steps
        for _ in range(steps):
            self.model(x).sum().backward()

    def weights(self):
        return self.accelerator.unwrap_model(self.model).state_dict()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for prepared, read in read_behind_prepare(module):
            if _is_told_apart(module, read):
                continue
            model = module.text(read.value)
            yield self.finding(
                module,
                read,
                f"in a run of several processes `{model}` is the wrapper that line "
                f"{prepared.lineno} makes, and has no `{read.attr}`: ask `unwrap_model({model})`",
                trail=[(prepared, "may be wrapped here")],
            )
        for wrap in module.nodes(ast.Assign):
            made, target = wrap.value, wrap.targets[0]
            if not isinstance(made, ast.Call) or not isinstance(target, ast.Name):
                continue
            if module.qualified(made.func) not in _WRAPPERS or not given(made):
                continue
            own = own_names(module, given(made)[0])
            for use in _asked(module, wrap, target.id, own):
                goes_around = _goes_around(module, made, use)
                model = (
                    f"call it in the `forward` of the model and use `{target.id}(...)`, because "
                    f"gradients through `{target.id}.module` are not averaged over the processes"
                    if goes_around
                    else f"the model is `{target.id}.module`"
                )
                yield self.finding(
                    module,
                    use,
                    f"`{target.id}` is the wrapper that line {wrap.lineno} makes, and has no "
                    f"`{use.attr}`: {model}",
                    trail=[(made, "wrapped here")],
                    fixes=[] if goes_around else [_behind(module, use)],
                )


def _asked(
    module: Module, wrap: ast.Assign, name: str, own: frozenset[str]
) -> Iterator[ast.Attribute]:
    """Where one of the names is read of the wrapper, while the name stands for nothing else."""
    function, block = module.function_of(wrap), module.parent(wrap)
    stored = [
        each
        for each in module.uses(name, function)
        if isinstance(each.ctx, ast.Store) and _is_behind(module, each, wrap)
    ]
    for use in module.uses(name, function) if own else ():
        up = module.parent(use)
        if not isinstance(up, ast.Attribute) or up.attr not in own:
            continue
        if isinstance(up.ctx, ast.Store):
            return
        after = _is_behind(module, use, wrap)
        rebound = any(is_before(each, use) for each in stored)
        below = block is not None and within(use, block, module)
        here = after and below and not rebound and module.function_of(use) is function
        if here and not _is_told_apart(module, up):
            yield up


def _is_told_apart(module: Module, read: ast.Attribute) -> bool:
    """The code asked which object it has: in the `else` of `if isinstance(model, DataParallel):`,
    or under `if hasattr(model, "encode"):`."""
    for guard in module.guards_of(read):
        match guard.test:
            case ast.Call(func=ast.Name(id="isinstance" | "hasattr"), args=[asked, of]):
                same = module.text(asked) == module.text(read.value)
                if same and guard.holds != _is_of_wrapper(module, of):
                    return True
    return False


def _is_of_wrapper(module: Module, asked: ast.expr) -> bool:
    """A class of wrappers, some of them, or the name of the attribute that only they have."""
    parts = asked.elts if isinstance(asked, ast.Tuple) else [asked]
    return is_constant(asked, "module") or any(module.qualified(e) in _WRAPPERS for e in parts)


def _is_behind(module: Module, use: ast.Name, wrap: ast.Assign) -> bool:
    return is_before(wrap, use) and not within(use, wrap, module)


def _goes_around(module: Module, made: ast.Call, use: ast.Attribute) -> bool:
    """The loss would be computed by the model itself: `DistributedDataParallel` averages gradients
    only where it is called."""
    call = module.parent(use)
    is_loss = isinstance(call, ast.Call) and call.func is use and is_trained_on(module, call)
    return is_loss and module.qualified(made.func) in AVERAGING


def _behind(module: Module, use: ast.Attribute) -> Fix | None:
    edit = module.insert_after(use.value, ".module")
    return module.fix("use the model inside the wrapper", Safety.UNSAFE, edit)
