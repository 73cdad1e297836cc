"""Generated programs about places: a rehearsal says which of them fail, the lint says which would.

    python benchmarks/generated_places.py [--count 2000] [--seed 0] [--show]

Every program is run once on a simulated GPU. `found` counts those that fail and are reported,
`false alarms` those that run and are reported.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.rules import Rule, all_rules
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

HEADS = (
    "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n",
    "import torch as T\nimport torch.nn as nn\nfrom torch.nn import functional as F\ntorch = T\n",
)
FRESH = ("torch.arange(4)", "torch.ones(4)", "torch.zeros(4, 4)", "torch.full((4,), 2.0)",
         "torch.tensor([1.0, 2.0, 3.0, 4.0])", "torch.linspace(0, 1, 4)",
         "torch.eye(4)")  # fmt: skip
HARMLESS = ("torch.tensor(2.0)", "{x}.new_ones(4)", "torch.ones_like({x})",
            "torch.ones(4, device={x}.device)", "torch.arange(4).to({x}.device)",
            "torch.ones(4).to({x})", "torch.full((), 2.0)", "torch.ones(4).sum()")  # fmt: skip
MEETINGS = ("{a} + {b}", "{a} * {b}", "torch.mul({a}, {b})", "torch.maximum({a}, {b})",
            "torch.where({a} > 0, {a}, {b})", "({a}).sub({b})", "{b} / ({a} + 1)")  # fmt: skip
NAMES = ("x", "states", "h", "inputs", "q")


@dataclass(frozen=True)
class Program:
    relation: str
    source: str
    """Defines `main(device)`."""


def factory(chance: random.Random) -> Program:
    """A fresh tensor meets what follows the module, on the way through a few constructions."""
    x, made = chance.choice(NAMES), chance.choice(("made", "bias", "t", "rows"))
    fresh = chance.choice(chance.choice((FRESH, HARMLESS))).format(x=x)
    partner = chance.choice((x, f"self.proj({x})", "self.mask", f"self.proj({x}).relu()"))
    before, helper, extra = "", "", ""
    way = chance.choice(("plain", "name", "function", "method", "pair", "list", "argument", "loop"))
    used = made
    if way == "plain":
        used = f"({fresh})"
    elif way == "name":
        before = f"other = {fresh}\n{made} = other.float()"
    elif way == "function":
        helper = f"def make({x}):\n    return {fresh}\n\n"
        before = f"{made} = make({x})"
    elif way == "method":
        extra = f"    def make(self, {x}):\n        return {fresh}\n\n"
        before = f"{made} = self.make({x})"
    elif way == "pair":
        before = f"{made}, size = {fresh}, 3"
    elif way == "list":
        before = f"kept = []\nkept.append({fresh})\n{made} = kept[0]"
    elif way == "argument":
        before = f"if given is None:\n    given = {fresh}"
        used = "given"
    else:
        before = f"for step in range(2):\n    {made} = {fresh}"
    meeting = chance.choice(MEETINGS).format(a=partner, b=used)
    body = "\n".join(f"        {line}" for line in [*before.splitlines(), f"return {meeting}"])
    source = (
        f"{chance.choice(HEADS)}\n{helper}class Model(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.proj = nn.Linear(4, 4)\n"
        '        self.register_buffer("mask", torch.ones(4))\n\n'
        f"{extra}    def forward(self, {x}, given=None):\n{body}\n\n"
        "def main(device):\n    return Model().to(device)(torch.ones(4, 4, device=device))\n"
    )
    return Program("factory", source)


def moved_alone(chance: random.Random) -> Program:
    """One tensor of a layer that is elsewhere is moved, and the other may be left."""
    x, layer = chance.choice(NAMES), chance.choice(("layer", "module", "m"))
    to = chance.choice((f".to({x}.device)", f".to({x})", f".to(device={x}.device)"))
    left = chance.choice(("", "", to))
    weight, bias = f"{layer}.weight{to}", f"{layer}.bias{left}"
    body = chance.choice((
        f"w = {weight}\n    return F.linear({x}, w, {bias})",
        f"w, b = {weight}, {bias}\n    return F.linear({x}, w, b)",
        f"b = {layer}.bias{to}\n    return F.linear({x}, {layer}.weight{left}, b)",
        f"{layer}.to({x}.device)\n    return F.linear({x}, {layer}.weight, {layer}.bias)",
        f"return torch.addmm({bias}, {x}, {weight})",
        f"w = {weight}\n    return F.layer_norm({x}, (4,), w[0], {bias})",
    ))  # fmt: skip
    source = (
        f"{chance.choice(HEADS)}\ndef run({layer}, {x}):\n    {body}\n\n"
        "def main(device):\n    return run(nn.Linear(4, 4), torch.ones(4, 4, device=device))\n"
    )
    return Program("moved alone", source)


def one_path(chance: random.Random) -> Program:
    """A tensor is moved in one branch, in both, or whatever the branch."""
    name = chance.choice(("sigmas", "steps", "weights"))
    to = chance.choice((".to(device)", ".to(device=device)"))
    other = chance.choice(("", "", to))
    branches = chance.choice((
        f"if smooth:\n        {name} = {name}.cumsum(0){to}\n    "
        + (f"else:\n        {name} = {name}{other}\n    " if other else ""),
        f"if not smooth:\n        pass\n    else:\n        {name} = {name}.exp(){to}\n    ",
        f"if smooth:\n        {name} = {name}.exp()\n    {name} = {name}{to}\n    ",
        f"if smooth:\n        {name} = {name}.exp(){to}\n    {name} = {name}.float(){other}\n    ",
        f"{name} = {name}.exp(){to} if smooth else {name}{other}\n    ",
        f"if not smooth:\n        return {name}\n    {name} = {name}{to}\n    ",
    ))  # fmt: skip
    meeting = chance.choice(MEETINGS).format(a="noise", b=name)
    source = (
        f"{chance.choice(HEADS)}\n"
        f"def run({name}: torch.Tensor, smooth: bool, device: torch.device):\n    {branches}"
        f"noise = torch.ones(4, device=device)\n    return {meeting}\n\n"
        "def main(device):\n    for smooth in (True, False):\n"
        "        run(torch.ones(4), smooth, device)\n"
    )
    return Program("one path", source)


def left_behind(chance: random.Random) -> Program:
    """A module keeps a tensor where a move reaches it or not, and computes with it."""
    x, kept = chance.choice(NAMES), chance.choice(("table", "weights", "steps", "_cache"))
    fresh = chance.choice(
        chance.choice((FRESH, FRESH, ("torch.tensor(2.0)", "torch.ones(4).sum()")))
    )
    way = chance.choice(("plain", "plain", "name", "function", "buffer", "parameter", "apply"))
    helper, extra = "", ""
    keep = f"self.{kept} = {fresh}"
    if way == "name":
        keep = f"made = {fresh}\n        self.{kept} = made.float()"
    elif way == "function":
        helper, keep = f"def make():\n    return {fresh}\n\n", f"self.{kept} = make()"
    elif way == "buffer":
        keep = f'self.register_buffer("{kept}", {fresh}, persistent=False)'
    elif way == "parameter":
        keep = f"self.{kept} = nn.Parameter(({fresh}).float())"
    elif way == "apply":
        extra = (
            "    def _apply(self, fn, recurse=True):\n"
            f"        self.{kept} = fn(self.{kept})\n        return super()._apply(fn, recurse)\n\n"
        )
    read = f"self.{kept}" + chance.choice(("", "", "", f".to({x}.device)", ".float()", ".abs()"))
    partner = chance.choice((x, f"self.proj({x})", "self.proj.weight"))
    meeting = chance.choice(MEETINGS).format(a=partner, b=read)
    source = (
        f"{chance.choice(HEADS)}\n{helper}class Model(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.proj = nn.Linear(4, 4)\n"
        f"        {keep}\n\n{extra}    def forward(self, {x}):\n        return {meeting}\n\n"
        "def main(device):\n    return Model().to(device)(torch.ones(4, 4, device=device))\n"
    )
    return Program("left behind", source)


def library(chance: random.Random) -> Program:
    """What a library gives on the CPU is moved, or not, before a model computes with it."""
    rows = chance.choice(("rows", "batch", "data", "pixels"))
    made = chance.choice((
        f"{rows} = torch.from_numpy(np.ones((4, 4), np.float32))",
        f"{rows} = next(iter(DataLoader(torch.ones(8, 4), batch_size=4)))",
        f"{rows} = torch.load(io.BytesIO(SAVED), map_location='cpu')['rows']",
        f"for {rows}, _ in DataLoader(PAIRS, batch_size=4):\n        break",
    ))  # fmt: skip
    move = chance.choice(("", "", f"{rows} = {rows}.to(device)\n    "))
    model = chance.choice((
        "model = nn.Linear(4, 4).to(device)",
        "model = nn.Linear(4, 4)\n    model.to(device)",
        "model = nn.Linear(4, 4)",
        "model = nn.Linear(4, 4).eval().to(device)",
    ))  # fmt: skip
    stays = "to(device)" not in model
    used = chance.choice((
        f"model({rows})", f"model({rows}.float())", f"model({rows}).sum()",
        f"model.weight @ {rows}" if not stays else f"model({rows} * 2)",
    ))  # fmt: skip
    if stays:
        move = ""
    source = (
        f"{chance.choice(HEADS)}import io\nimport numpy as np\n"
        "from torch.utils.data import DataLoader\n\n"
        "PAIRS = [(torch.ones(4), 1)] * 8\nFILE = io.BytesIO()\n"
        "torch.save({'rows': torch.ones(4, 4)}, FILE)\nSAVED = FILE.getvalue()\n\n"
        f"def run(device: torch.device):\n    {model}\n    {made}\n    {move}return {used}\n\n"
        "def main(device):\n    return run(torch.device(device))\n"
    )
    return Program("library", source)


def member(chance: random.Random) -> Program:
    """A member of a mapping is moved, or not, and met; another one may be left."""
    x, kept = chance.choice(NAMES), chance.choice(("state", "batch", "kept"))
    made = chance.choice((
        f"{kept} = {{'a': {chance.choice(FRESH)}, 'b': {x}}}",
        f"{kept} = dict(a={chance.choice(FRESH)}, b={x})",
        f"{kept} = {{'b': {x}}}\n    {kept}['a'] = {chance.choice(FRESH)}",
        f"{kept} = {{'a': {chance.choice(FRESH)}, 'b': at({x})}}",
    ))  # fmt: skip
    to = chance.choice((".to(device)", f".to({x}.device)", f".to({x})"))
    moved = chance.choice((
        "", "", f"{kept}['a'] = {kept}['a']{to}\n    ",
        f"{kept} = {{k: v{to} for k, v in {kept}.items()}}\n    ",
        f"for k in {kept}:\n        {kept}[k] = {kept}[k]{to}\n    ",
        f"{kept}['b'] = {kept}['b']{to}\n    ",
    ))  # fmt: skip
    read = f"{kept}['a']" if chance.random() < 0.6 else f"{kept}['b']"
    read = chance.choice((read, read, read.replace("[", ".get(").replace("]", ")")))
    meeting = chance.choice(MEETINGS).format(a=x, b=read)
    source = (
        f"{chance.choice(HEADS)}\ndef at(rows):\n    if isinstance(rows, int):\n"
        "        rows = torch.ones(rows)\n    return rows * 2\n\n"
        f"def run({x}: torch.Tensor, device: torch.device):\n    {x} = {x}.to(device)\n"
        f"    {made}\n    {moved}return {meeting}\n\n"
        "def main(device):\n    return run(torch.ones(4, 4), device)\n"
    )
    return Program("member", source)


RELATIONS: tuple[Callable[[random.Random], Program], ...] = (
    factory,
    moved_alone,
    one_path,
    left_behind,
    library,
    member,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print what was judged otherwise")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    places = [rule for code, rule in all_rules().items() if code.startswith("DEV52")]
    rules = [rule() for rule in places if rule.default]
    counts: Counter[tuple[str, bool, bool]] = Counter()
    for number in range(options.count):
        program = RELATIONS[number % len(RELATIONS)](chance)
        fails, reported = fails_on_a_gpu(program), is_reported(program, rules)
        counts[program.relation, fails, reported] += 1
        if fails != reported and options.show:
            print(f"--- {program.relation}: {'missed' if fails else 'false alarm'}")
            print(program.source)
    for relation in dict.fromkeys(key[0] for key in counts):
        failing = counts[relation, True, True] + counts[relation, True, False]
        running = counts[relation, False, True] + counts[relation, False, False]
        found, alarms = counts[relation, True, True], counts[relation, False, True]
        share = 100 * found / max(failing, 1)
        print(f"{relation:14} found {found} of {failing} ({share:.1f} %), "
              f"false alarms {alarms} of {running}")  # fmt: skip


def fails_on_a_gpu(program: Program) -> bool:
    space: dict[str, Any] = {}
    with Rehearsal(parse_spec("cuda")):
        exec(compile(program.source, "generated.py", "exec"), space)
        try:
            space["main"]("cuda")
        except RuntimeError as error:
            if "same device" not in str(error) and "device" not in str(error):
                raise
            return True
    return False


def is_reported(program: Program, rules: list[Rule]) -> bool:
    return bool(judge("generated.py", program.source.encode(), rules, open_project()).findings)


if __name__ == "__main__":
    main()
