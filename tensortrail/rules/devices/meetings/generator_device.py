from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule, Timeline
from tensortrail.rules.devices.shared.batches.shuffled_loaders import Shuffled, shuffled_loaders
from tensortrail.rules.devices.shared.in_runs.refused_generators import (
    on_the_device,
    refused_generators,
    spoken,
)
from tensortrail.rules.devices.shared.meetings.drawn_in_place import drawn_on_the_cpu
from tensortrail.rules.devices.shared.meetings.generators import (
    Draw,
    DrawForCaller,
    draws_for_callers,
    is_certain,
    is_meant,
    may_be_given,
    unfit_draws,
)
from tensortrail.rules.devices.shared.meetings.given_generators import (
    asks_where_it_is,
    generator_of,
    is_given,
    where_drawn,
)
from tensortrail.rules.shared.failures import weight
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import keyword_given
from tensortrail.rules.shared.sentences import one_line

_RANDOM = tuple(f"torch.{name}" for name in "rand randn randint randperm normal".split())


class GeneratorDevice(Rule):
    """Random numbers are drawn on another device than the one of their generator.

    ## What it does
    In code, reports, as a note, `torch.randn(..., generator=generator, device=device)` and the like
    if

    - the generator is a plain `torch.Generator()`, which is on the CPU;
    - the generator was made on a device, and the call has no `device=`;
    - the generator is an argument, in a function that never reads `generator.device` (off by
      default if no caller in the project passes a generator);
    - a plain generator draws for a tensor argument: `torch.multinomial(p, 1, generator=...)`;
    - a tensor that was moved to the CPU is filled with a generator from an argument or a list, and
      no line reads the device of that generator.

    Also reports, as a note, a `DataLoader` that shuffles without a generator in a file that makes a
    GPU the default device.

    In a recorded run, reports the call that torch refused, and the line that made the generator.

    ## Why is this bad?
    torch raises a RuntimeError if the generator is on another device than the tensor. A seeded
    generator is usually on the CPU, even if the model is on a GPU: its numbers are then the same on
    every machine.

    ## Fix safety
    In code, no fix is offered: the generator may be None, or a list of generators. In a run it is
    unsafe: a generator on a GPU gives other numbers than one on the CPU.

    ## References
    - huggingface/diffusers, `randn_tensor`
    """

    code = "DEV512"
    name = "generator-device"
    since = "0.2.0"
    severity = Severity.NOTE
    warns = False
    notes = False
    triggers = (("generator", "torch"), ("set_default_", "DataLoader"))

    bad = (
        Bad(
            """\
import torch

def noise(shape, generator, device):
    return torch.randn(shape, generator=generator, device=device)
""",
            lines=(4,),
            instead="""\
import torch

def noise(shape, generator, device):
    made_on = generator.device if generator is not None else device
    return torch.randn(shape, generator=generator, device=made_on).to(device)
""",
        ),
        Bad(
            """\
import torch

def step(sample: torch.Tensor, generator=None):
    noise = torch.randn(sample.shape, generator=generator).to(sample.device)
    return sample + noise
""",
            lines=(4,),
        ),
        Bad(
            """\
import torch

def start(size, seed, device):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator, device=device)
""",
            lines=(5,),
            instead="""\
import torch

def start(size, seed, device):
    generator = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(size, generator=generator, device=device)
""",
        ),
        Bad(
            """\
import torch

class Sampler:
    def __init__(self, device):
        self.device = device
        self.generator = torch.Generator(device=device)

    def order(self, size):
        return torch.randperm(size, generator=self.generator)
""",
            lines=(9,),
        ),
        Bad(
            """\
import torch
from torch.utils.data import DataLoader

def main(rows):
    torch.set_default_device("cuda")
    for batch in DataLoader(rows, 4, shuffle=True):
        print(batch)
""",
            lines=(6,),
            fixed="""\
import torch
from torch.utils.data import DataLoader

def main(rows):
    torch.set_default_device("cuda")
    for batch in DataLoader(rows, 4, shuffle=True, generator=torch.Generator(device="cuda")):
        print(batch)
""",
        ),
        Bad(
            """\
import torch
from torch.utils.data import random_split

def parts(data):
    torch.set_default_tensor_type("torch.cuda.FloatTensor")
    return random_split(data, [0.8, 0.2], generator=torch.Generator().manual_seed(3))
""",
            lines=(6,),
        ),
        Bad(
            """\
import torch

class Sampling:
    def __init__(self, seed):
        self.generator = torch.Generator()
        self.generator.manual_seed(seed)

    def __call__(self, logits):
        chances = torch.nn.functional.softmax(logits, dim=-1)
        return torch.multinomial(chances, 1, generator=self.generator)
""",
            lines=(10,),
            instead="""\
import torch

class Sampling:
    def __init__(self, seed, device):
        self.generator = torch.Generator(device)
        self.generator.manual_seed(seed)

    def __call__(self, logits):
        chances = torch.nn.functional.softmax(logits, dim=-1)
        return torch.multinomial(chances, 1, generator=self.generator)
""",
        ),
        Bad(
            """\
import torch

def sampled(chances: torch.Tensor, generators: dict[int, torch.Generator]):
    drawn = torch.empty_like(chances).cpu()
    for row, generator in generators.items():
        drawn[row].exponential_(generator=generator)
    return chances / drawn.to(chances.device)
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
import torch

def sampled(chances: torch.Tensor, generators: dict[int, torch.Generator]):
    drawn = torch.empty_like(chances)
    for row, generator in generators.items():
        drawn[row].exponential_(generator=generator)
    return chances / drawn

def noise(like: torch.Tensor, seed):
    generator = torch.Generator().manual_seed(seed)
    return like.cpu().normal_(generator=generator).to(like.device)
"""
        ),
        Good(
            """\
import torch

def chosen(chances: torch.Tensor, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.multinomial(chances.cpu(), 1, generator=generator).to(chances.device)
"""
        ),
        Good(
            """\
import torch
from torch.utils.data import DataLoader

def main(rows, sampler):
    torch.set_default_device("cuda")
    ordered = DataLoader(rows, batch_size=4)
    sampled = DataLoader(rows, batch_size=4, sampler=sampler)
    return ordered, sampled
"""
        ),
        Good(
            """\
import torch

def start(size, seed, device):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator).to(device)
"""
        ),
        Good(
            """\
import torch

def start(size, seed, device):
    generator = torch.Generator(device=device) if device != "mps" else torch.Generator()
    return torch.randn(size, generator=generator, device=device)
"""
        ),
        Good(
            """\
import torch

def noise(shape, device):
    generator = torch.Generator(device=device)
    return torch.randn(shape, generator=generator, device=device)
"""
        ),
        Good(
            "import torch\n\ndef order(size, generator=None):\n"
            "    return torch.randperm(size, generator=generator).tolist()\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*_RANDOM):
            generator, function = generator_of(call), module.function_of(call)
            if function is None or generator is None or not is_given(function, generator):
                continue
            where = (
                ""
                if asks_where_it_is(module, function, generator.id)
                else where_drawn(module, call)
            )
            if where:
                yield self.finding(
                    module,
                    call,
                    f"`{generator.id}` comes from the caller, but the numbers are {where}: torch "
                    "refuses a generator on a different device",
                    told=may_be_given(module, function, generator.id),
                )
        for call, name in drawn_on_the_cpu(module):
            yield self.finding(
                module,
                call,
                f"`{name}` comes from the caller, but this tensor was moved to the CPU: torch "
                "refuses a generator on a different device",
                told=True,
            )
        for draw in unfit_draws(module):
            yield self._unfit(module, draw)
        for drawn in draws_for_callers(module):
            yield self._for_caller(module, drawn)
        for shuffled in shuffled_loaders(module):
            yield self._shuffled(module, shuffled)

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for refused in refused_generators(timeline):
            event = refused.events[0]
            severity, confidence = weight(timeline, refused.events)
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` draws on `{refused.wanted}`, but {spoken(refused)}",
                severity=severity,
                confidence=confidence,
                fixes=[on_the_device(timeline, event.site, refused)],
            )

    def _unfit(self, module: Module, draw: Draw) -> Finding:
        on = f"`{module.text(draw.on)}`" if draw.on is not None else "the CPU"
        plain = "the CPU" if draw.on is not None else "the default device, a GPU"
        needs = f"`{one_line(module, draw.needs)}`" if draw.needs is not None else plain
        return self.finding(
            module,
            draw.call,
            f"the numbers are drawn on {needs}, but the generator is on {on}: torch refuses a "
            "generator on a different device",
            severity=_weight(module, draw),
            told=True,
            trail=[(draw.made, f"a generator on {on}")],
        )

    def _for_caller(self, module: Module, drawn: DrawForCaller) -> Finding:
        return self.finding(
            module,
            drawn.call,
            f"the numbers are drawn on the device of `{drawn.subject}`, which callers choose, but "
            "the generator is on the CPU: torch refuses a generator on a different device",
            told=True,
            trail=[(drawn.made, "a generator on the CPU")],
        )

    def _shuffled(self, module: Module, found: Shuffled) -> Finding:
        made = f"torch.Generator(device={found.device})"
        edit = keyword_given(module, found.loader, "generator", made)
        return self.finding(
            module,
            found.loader,
            f"the loader shuffles on the default device, which line {found.default.lineno} sets to "
            "a GPU, but its generator is on the CPU: torch refuses a generator on a different "
            "device",
            severity=Severity.ERROR,
            trail=[(found.default, "the default device"), (found.loader, "shuffles")],
            fixes=[module.fix(f"give it `{made}`", Safety.UNSAFE, edit) if edit else None],
        )


def _weight(module: Module, draw: Draw) -> Severity:
    if is_certain(module, draw):
        return Severity.ERROR
    return Severity.NOTE if is_meant(draw) else Severity.WARNING
