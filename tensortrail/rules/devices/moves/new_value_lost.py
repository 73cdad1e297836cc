from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Near, Rule
from tensortrail.rules.devices.shared.moves.dropped_moves import STATEMENT
from tensortrail.rules.devices.shared.moves.lost_in_hooks import lost_in_hooks
from tensortrail.rules.devices.shared.moves.lost_names import lost
from tensortrail.rules.devices.shared.moves.rebound import rebound_in_loops
from tensortrail.rules.devices.shared.moves.set_beside import set_beside
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line

_NAMED = re.compile(rb"(?:[^\n]*[;:])?[^\n=.(\[;:]*=(?!=)")
_MOVES = ".to( .cuda( .cpu( .half( .float( .detach( .clone( .pin_memory(".split()


class NewValueLost(Rule):
    """A name gets a moved tensor or a new object, which is never read: the old one stays in use.

    ## What it does
    Reports an assignment to the variable of a loop, or to an argument, if the new value is made of
    the old one and is never read:

    - `for key, value in state.items(): value = value.to("cpu")`, of tensors;
    - `avg = decay * avg + (1 - decay) * new` in a loop over the parameters of two models;
    - `args = tuple(a.to(device) for a in args)` as the last thing that a hook does;
    - `self = torch.compile(self)`, and `model = torch.compile(model)` of an argument.

    Also reports `inputs.input_ids = inputs.input_ids.to(device)` of what a tokenizer or processor
    returned, if `**inputs` is passed on: that passes the data, not the attributes that were set.

    Not reported: modules, which move in place, and values whose kind is not known.

    ## Why is this bad?
    The assignment has no effect, and no error is raised: it changes only the name, not the list,
    dict, module or caller that holds the object. An average never changes, offloading frees
    nothing, and a batch is still on the CPU when the model is called.

    ## Fix safety
    No fix is offered: the new value should be stored where the old one came from, written into it
    (`copy_`, `mul_`), or returned.

    ## References
    - google-research/timesfm issue 457
    - volcengine/verl pull request 299
    """

    code = "DEV628"
    name = "new-value-lost"
    warns = False
    triggers = (
        *(Near(word, _NAMED) for word in _MOVES),
        *(Near(word, STATEMENT) for word in _MOVES),
        ("zip(", "parameters("),
        ("_like(", "parameters("),
        "compile(",
        "DataParallel(",
        ("return_tensors", "**"),
    )

    bad = (
        Bad(
            """\
import torch

class Average:
    def update(self, model):
        for avg, new in zip(self.model.parameters(), model.parameters()):
            avg = self.decay * avg + (1 - self.decay) * new
""",
            lines=(6,),
            instead="""\
import torch

class Average:
    def update(self, model):
        for avg, new in zip(self.model.parameters(), model.parameters()):
            avg.mul_(self.decay).add_(new, alpha=1 - self.decay)
""",
        ),
        Bad(
            """\
import torch

def offload(optimizer):
    for state in optimizer.state.values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                value = value.to("cpu")
    torch.cuda.empty_cache()

def align(module, args):
    device = next(module.parameters()).device
    args = tuple(a.to(device) for a in args)
""",
            lines=(7, 12),
        ),
        Bad(
            """\
import torch

class Forecaster(torch.nn.Module):
    def load(self, path):
        self.load_state_dict(torch.load(path))
        self = torch.compile(self)

def materialise(model, device):
    for name, weight in model.named_parameters():
        weight = torch.empty_like(weight, device=device)
""",
            lines=(6, 10),
        ),
        Bad(
            """\
def embedded(model, tokenizer, texts):
    batch = tokenizer(texts, return_tensors="pt")
    for key, value in batch.items():
        value = value.to("cuda")
    return model(**batch)
""",
            lines=(4,),
        ),
        Bad(
            """\
class Chat:
    def answer(self, texts):
        inputs = self.processor(text=texts, return_tensors="pt")
        inputs.input_ids = inputs.input_ids.to(self.device)
        return self.generated(inputs)

    def generated(self, inputs):
        return self.model.generate(**inputs, max_new_tokens=8)
""",
            lines=(4,),
            instead="""\
class Chat:
    def answer(self, texts):
        inputs = self.processor(text=texts, return_tensors="pt").to(self.device)
        return self.generated(inputs)

    def generated(self, inputs):
        return self.model.generate(**inputs, max_new_tokens=8)
""",
        ),
    )
    good = (
        Good(
            """\
class Chat:
    def answer(self, texts):
        inputs = self.processor(text=texts, return_tensors="pt")
        inputs.input_ids = inputs.input_ids.to(self.device)
        return self.model.generate(inputs.input_ids, max_new_tokens=8)

    def answers(self, texts):
        inputs = self.processor(text=texts, return_tensors="pt")
        inputs.data = {name: each.to(self.device) for name, each in inputs.items()}
        inputs.input_ids = inputs.input_ids.to(self.device)
        return self.model.generate(**inputs)
"""
        ),
        Good(
            """\
import torch

def offload(optimizer):
    for state in optimizer.state.values():
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                value = value.to("cpu")
                state[key] = value
"""
        ),
        Good(
            """\
import torch

def align(module, args):
    device = next(module.parameters()).device
    args = tuple(a.to(device) for a in args)
    return args

def place(models: list[torch.nn.Module], nets, device):
    for model in models:
        model = model.to(device)
    for net in nets:
        net = net.to(device)
"""
        ),
        Good(
            """\
import torch

def last(tensors: list[torch.Tensor]):
    for x in tensors:
        x = x.cpu()
    return x

def kept(model, loader):
    for x in loader:
        x = model(x.cuda())

def forward(hidden, timestep: torch.Tensor):
    timestep = timestep.to(hidden.dtype)
    return hidden

def sums(a, b):
    for p, q in zip(a.parameters(), b.parameters()):
        p = p - q
        print(p.norm())
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign, batch, use in set_beside(module):
            shown = batch.id
            yield self.finding(
                module,
                assign,
                f"the assignment sets an attribute of `{shown}` beside its data, and `**{shown}` "
                f"passes the data on as it was: move all of it, `{shown} = {shown}.to(device)`",
                trail=[(use, "passed on as it was")],
            )
        told = {id(assign) for assign, _ in rebound_in_loops(module)}  # by DEV504
        told |= {id(each.at) for each in lost_in_hooks(module)}  # by DEV650
        for assign, name, binder in lost(module):
            if id(assign) in told:
                continue
            of_loop = isinstance(binder, ast.For)
            where = "the next iteration replaces it" if of_loop else "the function ends"
            kept = "what the loop iterates over" if of_loop else "the caller"
            yield self.finding(
                module,
                assign,
                f"`{one_line(module, assign)}` gives `{name.id}` a new value that is not read "
                f"before {where}: {kept} keeps the old value",
                severity=Severity.WARNING,
                confidence=Confidence.HIGH,
                trail=[(binder, f"`{name.id}` comes from here")],
            )
