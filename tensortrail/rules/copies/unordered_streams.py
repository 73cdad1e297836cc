from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line, line_of, where
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.shared.sizes import size
from tensortrail.rules.timeline import Storage


class UnorderedStreams(Rule):
    """Two streams use the same memory and neither waits for the other.

    ## What it does
    In a rehearsed run (`tensortrail trace --rehearse`), which works in order and still detects the
    race, reports:

    - a stream that reads or writes what another one wrote, or writes what another one reads, if no
      event, `wait_stream`, synchronisation, blocking copy or autograd orders the two;
    - memory that its stream frees and gives to the next tensor, while another stream may still use
      it.

    In code, reports `wait_stream` with the default stream where the current one is meant.

    ## Why is this bad?
    Values are wrong now and then, and no error is raised: a kernel reads what is half written, what
    was there before, or another tensor. `torch.cuda.Stream()` does not wait for the default stream,
    nor the default stream for it. Freed memory is reused at once by the stream on which it was
    allocated.

    ## Fix safety
    No fix is offered: `a.wait_stream(b)` belongs after the last work of `b` that `a` needs, and as
    late as possible. Only the author knows what is to overlap.

    ## References
    - pytorch/pytorch, CUDA semantics: streams, and streams of backward passes
    - pytorch/pytorch documentation of `torch.Tensor.record_stream`
    """

    code = "XFR603"
    name = "unordered-streams"
    since = "0.2.0"
    severity = Severity.ERROR
    triggers = (("wait_stream", "default_stream"),)

    bad = (
        Bad(
            """\
import torch

class Reducer:
    def add(self, parameter):
        self.side.wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(self.side):
            self.bucket.copy_(parameter.grad)
""",
            lines=(5,),
            fixed="""\
import torch

class Reducer:
    def add(self, parameter):
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self.bucket.copy_(parameter.grad)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

class Reducer:
    def add(self, parameter):
        self.side.wait_stream(torch.cuda.current_stream())
"""
        ),
        Good(
            """\
import torch

def wait_for(side):
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.default_stream().wait_stream(side)
"""
        ),
        Good(
            """\
import torch

def start(side):
    main = torch.cuda.default_stream()
    with torch.cuda.stream(main):
        main.wait_stream(side)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        """The default stream is waited for, or made to wait, where the current one is meant."""
        if in_tests(module):
            return
        for call in module.calls("wait_stream"):
            for stream in (*call.args, receiver(call)):
                if not isinstance(stream, ast.Call) or called(stream) != "default_stream":
                    continue
                if not _current_too(module, call):
                    yield self._default(module, call, stream)

    def _default(self, module: Module, call: ast.Call, stream: ast.Call) -> Finding:
        does = "waits for the default stream" if stream in call.args else (
            "makes the default stream wait"
        )  # fmt: skip
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` {does}, but the caller may work on another stream, which "
            "is not waited for",
            severity=Severity.WARNING,
            fixes=[_current(module, stream)],
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in by_line(timeline.events(Did.RACE)):
            event = events[0]
            again = event.facts.get("does") == "given away again"
            told = self._given_again(timeline, event) if again else self._raced(timeline, event)
            yield replace(told, evidence={**told.evidence, "races": str(len(events))})

    def _raced(self, timeline: Timeline, event: Event) -> Finding:
        before = _used(timeline, event, "written", "read")
        mine = str(event.facts.get("stream"))
        does, did = str(event.facts.get("does")), _does(before)
        other = str(before.facts.get("stream")) if before else "another stream"
        return self.finding_in_run(
            timeline,
            event,
            f"{_what(timeline, event.storage)} is {does} on {mine} by {_op(event)}, but nothing "
            f"makes that stream wait for {other}, where it was {did}{where(before)}: on a GPU the "
            "two run at the same time. Let the stream wait before this, with `.wait_stream(...)` "
            "or an event",
        )

    def _given_again(self, timeline: Timeline, event: Event) -> Finding:
        use = _used(timeline, event, "written", "read")
        gone = _used(timeline, event, "freed")
        home, user = event.facts.get("stream"), use.facts.get("stream") if use else "another stream"
        found = self.finding_in_run(
            timeline,
            event,
            f"{_what(timeline, event.storage)}, memory of {home}, is {_does(use)} on {user} and "
            f"freed{where(gone)} before its own stream waited for that: there it may be given to "
            f"the next tensor{where(event)} while {user} still uses it. Call "
            f"`.record_stream(...)` with {user}, or let {home} wait before it is freed",
            confidence=Confidence.MEDIUM,
        )
        at = line_of(use) if use else None
        return replace(found, site=at or found.site)


def _current(module: Module, stream: ast.Call) -> Fix | None:
    text = module.text(stream.func).removesuffix("default_stream") + "current_stream"
    edit = module.replace(stream.func, text)
    return module.fix("wait for the current stream", Safety.UNSAFE, edit)


def _used(timeline: Timeline, event: Event, *does: str) -> Event | None:
    if event.storage is None:
        return None
    history = timeline.history(event.storage, event)
    found = (each for each in reversed(history) if each.did is Did.USED)
    return next((each for each in found if each.facts.get("does") in does), None)


def _does(use: Event | None) -> str:
    return str(use.facts.get("does")) if use else "used"


def _what(timeline: Timeline, storage: Storage | None) -> str:
    return f"`{timeline.name(storage)}` ({size(storage.nbytes)})" if storage else "A tensor"


def _op(event: Event) -> str:
    return event.op.removeprefix("aten.") or "an operation"


def _current_too(module: Module, call: ast.Call) -> bool:
    """The function orders the current stream in the same way."""
    meant = module.text(call).replace("default_stream", "current_stream")
    others = module.calls("wait_stream", inside=module.function_of(call))
    return any(module.text(each) == meant for each in others)
