from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Branch, Good, Module, Rule, Timeline
from tensortrail.rules.offload._flags_read import (
    asked_to_be_there,
    asks_more,
    does_something,
    is_left_to_subclasses,
    is_sibling,
    is_yes_or_no,
    names_in_function,
    same_owner,
    switches_offload_on,
)
from tensortrail.rules.offload._settings import CONFIG
from tensortrail.rules.shared import device_maps
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.shared.sentences import one_line

_POLICY = pattern(r"(^|\.)OffloadPolicy$")


class OffloadFlagMisread(Rule):
    """An offload setting is misread, or has no effect.

    ## What it does
    In code, reports:

    - an offload configuration whose mere presence (`if config:`, `is not None`) turns offloading
      on, though its device may be "none";
    - an `OffloadPolicy` used as a condition: it is always true;
    - one offload configuration passed in place of another of the same call
      (`offload_param_config=offload_optimizer_config`);
    - a boolean offload setting that a function accepts and never reads.

    In a recorded run, reports a device map whose entries name no part of the model, split a block
    that must stay whole, or whose weights ended elsewhere, or on meta with no hook that knows their
    values. Tied weights have one place, whatever the map says.

    ## Why is this bad?
    Offloading starts although `device="none"` switched it off, or `OffloadPolicy()`, which means
    "do not offload", offloads. A weight that lies elsewhere than the inputs of its module raises a
    device mismatch at the first call.

    ## Fix safety
    Unsafe, and only offered where a variable of the right name is in scope.

    ## References
    - deepspeedai/DeepSpeed pull requests 2208 and 3420
    - `torch.distributed.fsdp.OffloadPolicy`
    """

    code = "OFF104"
    name = "offload-flag-misread"
    since = "0.2.0"
    severity = Severity.ERROR
    passes_clear = False
    triggers = ("offload", "OffloadPolicy")
    shape = (
        pattern(rb"offload_\w*(config|cfg)\b"),
        pattern(rb"offload_\w+\s*=\s*(self\.|\w+\.)?(zero_)?offload_\w*(config|cfg|policy)"),
        pattern(rb"OffloadPolicy\b"),
        pattern(rb"offload\w*\s*:[\s\w.\[|\"']*bool"),
        pattern(rb"offload\w*\s*=\s*(True|False)\s*[,)]"),
    )

    bad = (
        Bad(
            """\
class Stage:
    def configure(self, offload_optimizer_config):
        if offload_optimizer_config is not None:
            self.offload_optimizer = True
            self.pinned = offload_optimizer_config.pin_memory
""",
            lines=(3,),
        ),
        Bad(
            """\
def setup(offload_optimizer_config, offload_param_config):
    return Offload(offload_param_config=offload_optimizer_config)
""",
            lines=(2,),
            fixed="""\
def setup(offload_optimizer_config, offload_param_config):
    return Offload(offload_param_config=offload_param_config)
""",
        ),
        Bad(
            """\
from torch.distributed.fsdp import OffloadPolicy

def shard(model, offload_policy: OffloadPolicy):
    if offload_policy:
        model.cpu()
""",
            lines=(4,),
        ),
        Bad(
            """\
def load(model, path, offload_state_dict: bool = False):
    model.load_state_dict(read(path))
""",
            lines=(1,),
        ),
    )
    good = (
        Good("def f(model, offload: bool = False):\n    raise NotImplementedError\n"),
        Good("class A(B):\n    def f(self, offload: bool = False):\n        self.x = 1\n"),
        Good("def f(offload: bool = False):\n    return g(**locals())\n"),
        Good("def f(x, _offload: bool = False):\n    return g(x)\n"),
        Good("class A:\n    def f(self, offload: bool = False):\n        return None\n"),
        Good(
            """\
class Stage:
    def configure(self, offload_optimizer_config):
        if offload_optimizer_config is not None and offload_optimizer_config.device != "none":
            self.offload_optimizer = True
"""
        ),
        Good(
            """\
class Stage:
    def configure(self, offload_config):
        if offload_config is not None:
            self.pinned = offload_config.pin_memory
"""
        ),
        Good(
            """\
def setup(offload_optimizer_config, offload_param_config):
    return Offload(offload_param_config=offload_param_config, other=offload_optimizer_config)
"""
        ),
        Good(
            """\
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy

def shard(model, offload_policy: OffloadPolicy):
    if isinstance(offload_policy, CPUOffloadPolicy):
        model.cpu()
"""
        ),
        Good("def f(offload_params: bool):\n    if offload_params:\n        move()\n"),
        Good(
            """\
from torch import nn

class Stack(nn.Module):
    def __init__(self, depth, cpu_offload: bool = False):
        super().__init__()
        self.depth = depth

    def offload_layers(self, cpu_offload):
        self.offloaded = cpu_offload

class Encoder(Stack):
    def __init__(self, depth, cpu_offload: bool = False):
        super().__init__(depth, cpu_offload=cpu_offload)
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(depth))
        self.offload_layers(cpu_offload)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for statement in module.nodes(ast.If):
            yield from self._policy_as_flag(module, statement.test)
        for branch in module.branches():
            yield from self._config_as_flag(module, branch)
        for choice in module.nodes(ast.IfExp):
            yield from self._policy_as_flag(module, choice.test)
        for denied in module.nodes(ast.UnaryOp):
            if isinstance(denied.op, ast.Not):
                yield from self._policy_as_flag(module, denied.operand)
        for call in module.nodes(ast.Call):
            yield from self._mixed_up(module, call)
            if module.qualified(call.func) == "bool" and call.args:
                yield from self._policy_as_flag(module, call.args[0])
        for function in module.nodes(ast.FunctionDef):
            yield from self._never_read(module, function)

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in device_maps.placements(timeline):
            told = list(device_maps.differences(event))
            for kind in dict.fromkeys(each.get("kind") for each in told):
                alike = [each for each in told if each.get("kind") == kind]
                first, *others = map(device_maps.sentence, alike)
                more = f" (and {len(others)} more)" if others else ""
                lost = kind == device_maps.NOWHERE
                yield self.finding_in_run(
                    timeline,
                    event,
                    f"{first}{more}",
                    severity=Severity.ERROR if lost else Severity.WARNING,
                    confidence=Confidence.HIGH,
                    about=device_maps.weight(timeline, event, alike[0]),
                    settings=device_maps.corrected(timeline, event, alike),
                    evidence={"model": str(event.facts.get("model")), "entries": str(len(alike))},
                )

    def _never_read(self, module: Module, function: ast.FunctionDef) -> Iterator[Finding]:
        """A yes-or-no offload setting that a function takes and does nothing with."""
        for argument in (*function.args.args, *function.args.kwonlyargs):
            asked = is_yes_or_no(module, function, argument)
            if not asked or "offload" not in argument.arg or not does_something(function):
                continue
            if argument.arg.startswith("_"):
                continue  # said to be unused
            cls = module.class_of(function)
            if cls is not None and cls.bases and function.name != "__init__":
                continue  # an override takes what its base takes
            if cls is not None and is_left_to_subclasses(module, cls, argument.arg):
                continue
            if any(
                each.id in (argument.arg, "locals") for each in module.nodes(ast.Name, function)
            ):
                continue
            yield self.finding(
                module,
                argument,
                f"`{argument.arg}` is accepted by `{function.name}` and never read",
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
            )

    def _config_as_flag(self, module: Module, branch: Branch) -> Iterator[Finding]:
        asked = next(
            (each for each in branch.guards if CONFIG.search(asked_to_be_there(module, each))), None
        )
        name = asked_to_be_there(module, asked) if asked is not None else ""
        if asked is None or name.endswith("policy") or asks_more(branch.guards, name):
            return
        switched = next((each for each in branch.body if switches_offload_on(module, each)), None)
        body = "\n".join(module.text(each) for each in branch.body)
        if switched is None or re.search(rf"{re.escape(name)}\.device\s*(!=|not in|is not)", body):
            return
        yield self.finding(
            module,
            asked.test,
            f"offloading is treated as on if `{name}` is present, but its device may be none",
            confidence=Confidence.MEDIUM,
            trail=[(switched, "offloading is switched on here")],
        )

    def _policy_as_flag(self, module: Module, test: ast.expr) -> Iterator[Finding]:
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        for part in parts:
            bare = part.operand if isinstance(part, ast.UnaryOp) else part
            if not isinstance(bare, (ast.Name, ast.Attribute)):
                continue
            value = module.value_of(bare)
            if _POLICY.search(value.cls):
                yield self.finding(
                    module,
                    bare,
                    f"`{one_line(module, bare)}` is an OffloadPolicy, which is always true: it "
                    "says whether to offload by its class (CPUOffloadPolicy)",
                )

    def _mixed_up(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        for keyword in call.keywords:
            given = last_name(keyword.value)
            wanted = keyword.arg or ""
            if not (CONFIG.search(given) and CONFIG.search(wanted)) or given == wanted:
                continue
            if not is_sibling(given, wanted):
                continue
            right = same_owner(keyword.value, wanted)
            at_hand = right in names_in_function(module, call)
            yield self.finding(
                module,
                keyword.value,
                f"`{wanted}` is given `{one_line(module, keyword.value)}`, not `{right}`",
                confidence=Confidence.HIGH if at_hand else Confidence.MEDIUM,
                fixes=[self._swapped(module, keyword.value, right)] if at_hand else [],
            )

    def _swapped(self, module: Module, node: ast.expr, right: str) -> Fix | None:
        return module.fix(f"pass `{right}`", Safety.UNSAFE, module.replace(node, right))
