from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._maps import (
    arbitrary,
    entries_counted,
    only_on_gpu,
    without_disk,
)
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class DeviceMapMiscounted(Rule):
    """The devices of a device map are counted or picked in a way that misses some.

    ## What it does
    Reports:

    - `len(device_map.values()) > 1`, which counts modules, not devices;
    - a set without `"disk"` that is taken for all devices because it has one member;
    - the first device that is not the CPU, if no condition says that there is one.

    Reported as a note: `list(set(device_map.values()))[0]`, which may be any of the devices.

    ## Why is this bad?
    A model with two modules on one GPU is treated as spread over several devices. A model on a GPU
    and on disk is loaded into the GPU as a whole. A model wholly on the CPU raises StopIteration at
    `next`. A head goes to whichever GPU comes first in a set, and with device names, that order
    changes from process to process.

    ## Fix safety
    Unsafe, and only for the count of entries: the condition changes its answer.

    ## References
    - huggingface/accelerate: `len(device_map.values())` decided whether hooks are attached
    - huggingface/accelerate: `load_state_dict` left `"disk"` out before it counted devices
    """

    code = "OFF116"
    name = "device-map-miscounted"
    severity = Severity.WARNING
    warns = False
    triggers = (("device_map", ".values("),)

    bad = (
        Bad(
            """\
def dispatch(model, device_map):
    if len(device_map.values()) > 1:
        attach_hooks(model, device_map)
    return model
""",
            lines=(2,),
            fixed="""\
def dispatch(model, device_map):
    if len(set(device_map.values())) > 1:
        attach_hooks(model, device_map)
    return model
""",
        ),
        Bad(
            """\
def place_head(model, head):
    first = list(set(model.hf_device_map.values()))[0]
    return head.to(first)
""",
            lines=(2,),
            instead="""\
def place_head(model, head):
    first = next(iter(model.hf_device_map.values()))
    return head.to(first)
""",
        ),
        Bad(
            """\
from safetensors.torch import load_file

def load(file, device_map):
    devices = list(set(device_map.values()) - {"disk"})
    if len(devices) == 1:
        return load_file(file, device=devices[0])
    return by_parts(file, device_map)
""",
            lines=(4,),
        ),
        Bad(
            """\
def by_layer(model):
    main = next(each for each in model.hf_device_map.values() if each not in ("cpu", "disk"))
    return {name: main if each == "cpu" else each for name, each in model.hf_device_map.items()}
""",
            lines=(2,),
        ),
    )
    good = (
        Good(
            """\
def dispatch(model, device_map):
    if len(set(device_map.values())) > 1:
        attach_hooks(model, device_map)
    return model
"""
        ),
        Good(
            """\
def place(model, device_map):
    if len(set(device_map.values())) == 1:
        return model.to(list(set(device_map.values()))[0])
    return model
"""
        ),
        Good(
            """\
def used(device_map):
    devices = list(set(device_map.values()) - {"disk"})
    return [each for each in devices if each != "cpu"]
"""
        ),
        Good(
            """\
def main_device(device_map):
    if set(device_map.values()) == {"cpu"}:
        return "cpu"
    return [each for each in device_map.values() if each != "cpu"][0]
"""
        ),
        Good(
            """\
def main_device(device_map):
    return next((each for each in device_map.values() if each != "cpu"), "cpu")
"""
        ),
        Good(
            """\
def known(device_map):
    if len(device_map.values()) == 0:
        raise ValueError("the device map is empty")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for count, values in entries_counted(module):
            yield self.finding(
                module,
                count,
                f"`{one_line(module, count)}` counts the modules of the map: several on one "
                "device are taken for several devices",
                fixes=[self._distinct(module, values)],
            )
        for pick in arbitrary(module):
            yield self.finding(
                module,
                pick,
                f"`{one_line(module, pick)}` is any device of the map: a set has no order",
                severity=Severity.NOTE,
            )
        for first in only_on_gpu(module):
            yield self.finding(
                module,
                first,
                f"`{one_line(module, first)}` raises for the map of a model that is wholly on the "
                "CPU: no device is left in it",
            )
        for left, test in without_disk(module):
            yield self.finding(
                module,
                left,
                f'`"disk"` is left out here, and line {test.lineno} takes one device for all: '
                "what lies on disk is loaded there as well",
                trail=[(test, "taken for the only device here")],
            )

    def _distinct(self, module: Module, values: ast.expr) -> Fix | None:
        edit = module.replace(values, f"set({module.text(values)})")
        return module.fix("count the devices", Safety.UNSAFE, edit)
