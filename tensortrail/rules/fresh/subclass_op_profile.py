from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, ClassFacts, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.fresh._classes import by_class, class_of, questions, short, with_class
from tensortrail.rules.fresh._profiles import (
    FACTORY_OPS,
    KEEPS_TYPE,
    dispatch_of,
    first_line,
    has_own_answers,
    inherited_gap,
    lives_in_a_pass,
    loses_type,
    name_in_class,
    wrapper_in,
)
from tensortrail.rules.shared.failures import weight
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line

_PINNING = ("aten.is_pinned", "aten._pin_memory")
_COMPUTE = "compute with a plain tensor: `.dequantize()` of a quantized one"
_MERGE = (
    "merge the adapter before the weights are quantized; or quantize them before `get_peft_model`, "
    "which then makes layers that can merge"
)
_FSDP = ("aten.split", "aten.as_strided", "aten.new_zeros")


class SubclassOpProfile(Rule):
    """A wrapper subclass implements some operations that a use needs, but not all of them.

    ## What it does
    In code, reports a wrapper subclass that

    - is made for sharding or checkpoints (it answers `empty_like`, `new_zeros`, `split`,
      `as_strided`) and has no answer to `new_empty`, with which checkpoint staging makes its
      copies;
    - answers only one of `_pin_memory` and `is_pinned`, and refuses every other op.

    Bases, decorator tables and a fall-through that wraps again count as answers. Not reported: a
    class that only `fsdp_post_all_gather` makes, whose tensors live as long as a forward pass.

    In a recorded run, reports a copy, a fresh or a moved tensor that is not of the class, and an
    operation that raised NotImplementedError.

    ## Why is this bad?
    `async_save` stages uninitialised memory without an error, if other ops fall through to the
    plain inner tensor. If they are refused, saving or offloading raises NotImplementedError.

    ## Fix safety
    No fix is offered: the right answer depends on what the class is made of.
    `tensortrail doctor subclass module:Class` runs the operations and shows which are answered.

    ## References
    - NVIDIA/TransformerEngine pull request 2721
    - pytorch/ao pull request 3526
    """

    code = "NEW304"
    name = "subclass-op-profile"
    since = "0.2.0"
    severity = Severity.ERROR
    triggers = (
        ("__torch_dispatch__", "empty_like"),
        ("__torch_dispatch__", "new_zeros"),
        ("_make_wrapper_subclass", "empty_like"),
        ("_make_wrapper_subclass", "new_zeros"),
        ("_make_wrapper_subclass", "is_pinned"),
        ("_make_wrapper_subclass", "_pin_memory"),
    )

    bad = (
        Bad(
            """\
import torch
aten = torch.ops.aten
_kept = {aten.empty_like.default, aten.new_zeros.default, aten.split.Tensor, aten.detach.default}

class Weight(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        out = func(*unwrap(args), **(kwargs or {}))
        if func not in _kept:
            return out
        return wrap(out)
""",
            lines=(5,),
            instead="""\
import torch
aten = torch.ops.aten
_kept = {aten.empty_like.default, aten.new_zeros.default, aten.new_empty.default, aten.split.Tensor,
         aten.detach.default}

class Weight(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        out = func(*unwrap(args), **(kwargs or {}))
        if func not in _kept:
            return out
        return wrap(out)
""",
        ),
        Bad(
            """\
import torch

class Quantized(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func == torch.ops.aten.empty_like.default:
            return cls.make_empty(args[0].shape)
        return func(*dequantized(args), **kwargs)
""",
            lines=(3,),
        ),
    )
    good = (
        Good(
            """\
import torch

class Quantized(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.empty_like.default, torch.ops.aten.new_empty.default):
            return cls.make_empty(args[0].shape, **kwargs)
        return func(*dequantized(args), **kwargs)
"""
        ),
        Good(
            """\
import torch

class Gathered(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.empty_like.default, torch.ops.aten.detach.default):
            return Gathered(func(args[0].inner))
        return func(*unwrapped(args))

class Sharded:
    def fsdp_post_all_gather(self, outputs, metadata, dtype, *, out=None):
        return Gathered(outputs[0]), outputs
"""
        ),
        Good(
            """\
import torch

class Traced(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func == torch.ops.aten.empty_like.default:
            count(func)
        return tree_map(wrap, func(*tree_map(unwrap, args)))
"""
        ),
        Good(
            """\
import torch
from base import Base

class Child(Base):
    extra = 1
""",
            files={
                "base.py": """\
import torch

class Base(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, device=inner.device)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func == torch.ops.aten.empty_like.default:
            return cls.make_empty(args[0].shape)
        return func(*args, **kwargs)
"""
            },
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            facts = module.class_facts(cls)
            if facts is None or not facts.is_wrapper or not facts.complete or facts.rewraps_rest:
                continue
            if not has_own_answers(module, cls, facts) or lives_in_a_pass(module, cls):
                continue
            yield from self._staging(module, cls, facts)
            yield from self._pinning(module, cls, facts)

    def _staging(self, module: Module, cls: ast.ClassDef, facts: ClassFacts) -> Iterator[Finding]:
        if "aten.new_empty" in facts.handles:
            return
        made = [op for op in FACTORY_OPS if op in facts.handles]
        if not made or inherited_gap(module, cls, facts):
            return
        sharded = [op for op in _FSDP if op in facts.handles]
        if "aten.empty_like" not in made and len(sharded) < 2:
            return  # computes with many ops, but is not made to be sharded or saved
        refuses = facts.raises_rest
        effect = (
            "saving it with a stager raises NotImplementedError"
            if refuses
            else "a stager gets a plain tensor, and the data is lost without an error"
        )
        made_for = f" and {', '.join(sharded)}" if sharded else ""
        yield self.finding(
            module,
            cls,
            f"`{cls.name}` answers {', '.join(made)} but not aten.new_empty: {effect}",
            severity=Severity.WARNING if refuses else Severity.ERROR,
            trail=[
                (dispatch_of(module, cls), f"answers {made[0]}{made_for}: made to be sharded"),
                (name_in_class(module, cls, made[0]), f"{made[0]} is answered here"),
            ],
            evidence={"handles": ", ".join(sorted(facts.handles))},
        )

    def _pinning(self, module: Module, cls: ast.ClassDef, facts: ClassFacts) -> Iterator[Finding]:
        answered = [op for op in _PINNING if op in facts.handles]
        if len(answered) != 1 or not facts.raises_rest:
            return
        missing = next(op for op in _PINNING if op not in answered)
        yield self.finding(
            module,
            cls,
            f"`{cls.name}` answers {answered[0]} but not {missing}: offloading to pinned memory "
            "raises NotImplementedError",
            severity=Severity.WARNING,
            trail=[(dispatch_of(module, cls), "refuses every op it does not answer")],
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        lost = (each for each in questions(timeline, "answer") if loses_type(each))
        for events in by_class(lost):
            sure = [each for each in events if each.op.rpartition(".")[2] in KEEPS_TYPE]
            event = (sure or events)[0]
            ops = sorted({f"`{each.op}`" for each in events})
            effect = "the type is lost" if sure else "what is copied into it loses the type"
            found = self.finding_in_run(
                timeline,
                event,
                f"`{class_of(event)}` answers {', '.join(ops)} with a plain "
                f"`{short(event.facts.get('result'))}`: {effect}",
                severity=Severity.ERROR if sure else self.severity,
                confidence=Confidence.HIGH if sure else Confidence.MEDIUM,
                evidence={"places": str(len(events))},
            )
            yield with_class(timeline, found, events, "the class answers here")
        yield from self._refused(timeline)

    def _refused(self, timeline: Timeline) -> Iterator[Finding]:
        """An operation the class does not know left it as an exception."""
        refused = [each for each in timeline.events(Did.ERROR) if wrapper_in(timeline, each)]
        for events in by_line(refused):
            event = events[0]
            severity, confidence = weight(timeline, events)
            kind = wrapper_in(timeline, event)
            yield self.finding_in_run(
                timeline,
                event,
                f"`{kind}` does not answer `{event.op}`: {first_line(event)}",
                severity=severity,
                confidence=confidence,
                fixes=[Fix(each, Safety.DISPLAY, ()) for each in _changes(event)],
                evidence={"attempts": str(len(events))},
            )


def _changes(event: Event) -> Iterator[str]:
    """A value can be computed otherwise; what is written in place has to stay what it is."""
    by = event.by
    if by is not None and "/peft/" in by.file.replace("\\", "/") and "merge" in (by.function or ""):
        yield _MERGE
    elif not event.op.endswith("_"):
        yield _COMPUTE
