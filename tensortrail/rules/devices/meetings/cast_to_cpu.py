from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.described import described
from tensortrail.rules.devices.shared.meetings.following import follows
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.places import Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVES, TO_DEVICE
from tensortrail.rules.shared.objects import given
from tensortrail.rules.view import FunctionNode

_TYPE = re.compile(r"torch\.(cuda\.)?(\w+)Tensor")
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool",
}  # fmt: skip


class CastToCpu(Rule):
    """A cast to `torch.FloatTensor` or a similar type moves the tensor to the CPU.

    ## What it does
    Reports, as a note, `x.type(torch.FloatTensor)`, `x.type("torch.LongTensor")` and the other
    types without `cuda` in their name, if `x` is an argument of a function or is on the device of
    its module.

    Not reported: a result that is moved or read out, and code under a condition about devices.

    Reported by default only if a submodule takes the result, or an operation takes it together with
    a tensor that is where the caller or the module is; the other notes if the rule is selected.

    ## Why is this bad?
    On a GPU, the next operation with another tensor raises: these names stand for a dtype *on the
    CPU*. The cast also waits for the GPU. A plain dtype such as `torch.float32` moves nothing.

    ## Fix safety
    Unsafe: the tensor stays where it is, which later code may not expect.

    ## References
    - pytorch documentation, `torch.Tensor.type`
    - coqui-ai/TTS, `forward_tts.py`
    """

    code = "DEV537"
    name = "cast-to-cpu"
    severity = Severity.NOTE
    notes = False
    needs_callers = True
    triggers = tuple((".type(", f"{kind}Tensor") for kind in _DTYPES)
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Scorer(nn.Module):\n"
            "    def forward(self, x):\n        keep = (x != 0).type(torch.FloatTensor)\n"
            "        return x * keep\n",
            lines=(7,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Scorer(nn.Module):\n"
            "    def forward(self, x):\n        keep = (x != 0).type(torch.float32)\n"
            "        return x * keep\n",
        ),
        Bad(
            "import torch\n\n\ndef mask(x: torch.Tensor, n: int):\n"
            "    rows = torch.arange(n, device=x.device)\n"
            "    return x.type('torch.LongTensor') + rows\n",
            lines=(6,),
            fixed="import torch\n\n\ndef mask(x: torch.Tensor, n: int):\n"
            "    rows = torch.arange(n, device=x.device)\n"
            "    return x.type(torch.int64) + rows\n",
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Scorer(nn.Module):\n"
            "    def forward(self, x):\n        keep = (x != 0).type(torch.float32)\n"
            "        return x * keep\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Scorer(nn.Module):\n"
            "    def forward(self, x):\n"
            "        keep = (x != 0).type(torch.FloatTensor).to(x.device)\n"
            "        return x * keep\n"
        ),
        Good(
            "import torch\n\n\ndef read(array):\n"
            "    return torch.from_numpy(array).type(torch.FloatTensor)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Scorer(nn.Module):\n"
            "    def forward(self, x):\n        if not x.is_cuda:\n"
            "            x = x.type(torch.FloatTensor)\n        return x\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Scorer(nn.Module):\n"
            "    def shown(self, x):\n"
            "        return x.detach().cpu().type(torch.FloatTensor).numpy()\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.stmt] = set()
        for call in module.calls("type"):
            kind = _named_type(module, call)
            function = module.function_of(call)
            if not kind or function is None or sets_up(function):
                continue
            assert isinstance(call.func, ast.Attribute)
            held = module.places(function).seen.get(call.func.value)
            there = follows(module, function, held) if held is not None else None
            if there is None or _is_brought_back(module, call) or _is_decided(module, call):
                continue
            if module.statement_of(call) in reported:
                continue
            reported.add(module.statement_of(call))
            yield self.finding(
                module,
                call,
                f"`{kind}Tensor` is a type on the CPU: this moves a tensor {described(there)} to "
                "the CPU",
                fixes=[_fix(module, call, kind)],
                told=_meets_others(module, function, call),
            )


def _named_type(module: Module, call: ast.Call) -> str:
    """`Float` of `x.type(torch.FloatTensor)`."""
    said = module.argument(call, 0, "dtype")
    if said is None or not isinstance(call.func, ast.Attribute):
        return ""
    value = module.value_of(said)
    sources = value.origins or (said,)
    named = [module.qualified(each) for each in sources if isinstance(each, ast.AST)]
    text = value.constant if isinstance(value.constant, str) else "".join(named[:1])
    match = _TYPE.fullmatch(text)
    return match[2] if match and not match[1] and match[2] in _DTYPES else ""


def _is_brought_back(module: Module, call: ast.Call) -> bool:
    """The result is moved, read out, or meant for the CPU."""
    up = module.parent(call)
    while isinstance(up, ast.Attribute):
        if up.attr in MOVES | {"type_as", "numpy", "tolist", "item"}:
            return True
        call_of = module.parent(up)
        up = module.parent(call_of) if isinstance(call_of, ast.Call) else None
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Assign):
        return False
    names = {module.text(each) for each in statement.targets}
    return any(
        isinstance(later.func, ast.Attribute)
        and later.func.attr in TO_DEVICE | {"numpy"}
        and module.text(later.func.value) in names
        for later in module.later(statement, ast.Call)
    )


def _meets_others(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """`self.embed(x.type(torch.LongTensor))`, at once or by the name that it is bound to."""
    statement, seen = module.statement_of(call), module.places(function).seen
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    later = (each for each in module.later(statement, ast.Name) if each.id in names)
    for use in (call, *later):
        above = module.parent(use)
        if isinstance(above, ast.Call) and use in given(above):
            place = seen[above].only if above in seen else None
            if place is not None and place.where is Where.SELF:
                return True
        elif isinstance(above, ast.BinOp):
            other = seen.get(above.right if above.left is use else above.left)
            if other is not None and follows(module, function, other) is not None:
                return True
    return False


def _is_decided(module: Module, call: ast.Call) -> bool:
    return any(guard.mentions("cuda", "device", "cpu", "gpu") for guard in module.guards_of(call))


def _fix(module: Module, call: ast.Call, kind: str) -> Fix | None:
    said = module.argument(call, 0, "dtype")
    if said is None or isinstance(said, ast.Name):
        return None
    dtype = f"torch.{_DTYPES[kind]}"
    edit = module.replace(said, dtype)
    return module.fix(f"cast to `{dtype}`, which moves nothing", Safety.UNSAFE, edit)
