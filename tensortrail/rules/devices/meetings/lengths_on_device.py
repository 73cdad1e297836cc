from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.written_for.device_aware import is_of_module
from tensortrail.rules.places import Place, What, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode

_PACKS = ("pack_padded_sequence",)


class LengthsOnDevice(Rule):
    """Sequences on a GPU are packed with lengths that are on the GPU too.

    ## What it does
    Reports `pack_padded_sequence(x, lengths)` if `lengths` was computed from `x`, or from a tensor
    on the same device, and nothing brings it to the CPU.

    Not reported: lengths that are an argument of their own, which callers may pass on the CPU.

    ## Why is this bad?
    On a GPU, torch raises "'lengths' argument should be a 1D CPU int64 tensor": it needs the
    lengths on the CPU, wherever the sequences are. If everything is on the CPU, it works.

    ## Fix safety
    Unsafe: the copy to the CPU waits for the GPU.

    ## References
    - pytorch documentation, `torch.nn.utils.rnn.pack_padded_sequence`
    - facebookresearch/ParlAI pull request 2910
    """

    code = "DEV536"
    name = "lengths-on-device"
    severity = Severity.WARNING
    triggers = _PACKS
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n"
            "from torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "class Encoder(nn.Module):\n    def forward(self, x):\n"
            "        lengths = (x != 0).sum(dim=1)\n"
            "        return pack_padded_sequence(x, lengths, batch_first=True)\n",
            lines=(9,),
            fixed="import torch\nfrom torch import nn\n"
            "from torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "class Encoder(nn.Module):\n    def forward(self, x):\n"
            "        lengths = (x != 0).sum(dim=1)\n"
            "        return pack_padded_sequence(x, lengths.cpu(), batch_first=True)\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\n"
            "def packed(ids: torch.Tensor, embed: nn.Embedding):\n"
            "    mask = ids.ne(0)\n    lengths = torch.sum(mask.int(), dim=1)\n"
            "    return nn.utils.rnn.pack_padded_sequence(ids, lengths=lengths)\n",
            lines=(8,),
            fixed="import torch\nfrom torch import nn\n\n\n"
            "def packed(ids: torch.Tensor, embed: nn.Embedding):\n"
            "    mask = ids.ne(0)\n    lengths = torch.sum(mask.int(), dim=1)\n"
            "    return nn.utils.rnn.pack_padded_sequence(ids, lengths=lengths.cpu())\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n"
            "from torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "class Tagger(nn.Module):\n    def training_step(self, batch):\n"
            "        rows = torch.relu(batch['rows'])\n"
            "        sizes = batch['sizes'].view(-1)\n"
            "        return pack_padded_sequence(rows, sizes, enforce_sorted=False)\n",
            lines=(10,),
            fixed="import torch\nfrom torch import nn\n"
            "from torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "class Tagger(nn.Module):\n    def training_step(self, batch):\n"
            "        rows = torch.relu(batch['rows'])\n"
            "        sizes = batch['sizes'].view(-1)\n"
            "        return pack_padded_sequence(rows, sizes.cpu(), enforce_sorted=False)\n",
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "def packed(x: torch.Tensor):\n    lengths = (x != 0).sum(dim=1).cpu()\n"
            "    return pack_padded_sequence(x, lengths, batch_first=True)\n"
        ),
        Good(
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "def packed(x: torch.Tensor, lengths: torch.Tensor):\n"
            "    return pack_padded_sequence(x, lengths, batch_first=True)\n"
        ),
        Good(
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "def packed(x: torch.Tensor):\n    lengths = (x != 0).sum(dim=1)\n"
            "    return pack_padded_sequence(x, lengths.tolist(), batch_first=True)\n"
        ),
        Good(
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "def packed(x: torch.Tensor):\n    lengths = [x.shape[1]] * x.shape[0]\n"
            "    return pack_padded_sequence(x, lengths, batch_first=True)\n"
        ),
        Good(
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "def packed(texts, device):\n    sizes = torch.tensor([len(each) for each in texts])\n"
            "    rows = torch.stack(texts).to(device)\n"
            "    return pack_padded_sequence(rows, sizes, batch_first=True)\n"
        ),
        Good(
            "import torch\n"
            "from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence\n\n\n"
            "def again(layer, packed, device: torch.device):\n"
            "    rows, sizes = pad_packed_sequence(layer(packed.to(device)))\n"
            "    return pack_padded_sequence(torch.relu(rows), sizes)\n"
        ),
        Good(
            "import torch\nfrom torch.nn.utils.rnn import pack_padded_sequence\n\n\n"
            "def packed(rows):\n    x = torch.zeros(len(rows), 4)\n"
            "    lengths = (x != 0).sum(dim=1)\n"
            "    return pack_padded_sequence(x, lengths, batch_first=True)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*_PACKS):
            rows = module.argument(call, 0, "input")
            lengths = module.argument(call, 1, "lengths")
            function = module.function_of(call)
            if rows is None or lengths is None or function is None:
                continue
            there = _together(module, function, rows, lengths)
            if there is None or _is_decided(module, call) or _was_unpacked(module, lengths):
                continue
            yield self.finding(
                module,
                lengths,
                f"`{module.text(lengths)}` is on the device of the sequences, and torch needs "
                "lengths on the CPU: this raises on a GPU",
                fixes=[_to_cpu(module, lengths)],
            )


def _together(
    module: Module, function: FunctionNode, rows: ast.expr, lengths: ast.expr
) -> Place | None:
    """The place of the lengths, if it goes along with that of the sequences on every path."""
    seen = module.places(function).seen
    of_rows, of_lengths = seen.get(rows), seen.get(lengths)
    there = of_lengths.only if of_lengths is not None else None
    if of_lengths is None or there is None or there.given:
        return None
    moved = of_lengths.what is What.TENSOR or of_lengths.moved is not None
    sure = moved or _is_asked_as_tensor(module, function, lengths)
    if there.where is Where.OF:
        root = _root(there.subject)
        if of_rows is not None and of_rows.places:
            beside = of_rows.only
            along = beside is not None and beside.where is Where.OF
            same = along and beside is not None and _root(beside.subject) == root
            same = same or (along and _is_batch(module, function, root))
            return there if sure and same and of_lengths.path != root else None
        return there if _is_batch(module, function, root) else None
    on_gpu = there.where is Where.LITERAL and there.subject != "cpu"
    return there if sure and (on_gpu or there.where in (Where.SELF, Where.DEVICE)) else None


def _is_asked_as_tensor(module: Module, function: FunctionNode, lengths: ast.expr) -> bool:
    """The function calls `batch["lengths"].max()` or the like."""
    shown = module.text(lengths)
    return any(
        module.text(each.value) == shown and isinstance(module.parent(each), ast.Call)
        for name in ("max", "min", "sum", "sort", "unsqueeze")
        for each in module.members(name, inside=function)
    )


def _root(subject: str) -> str:
    return subject.partition(".")[0].partition("[")[0]


def _is_batch(module: Module, function: FunctionNode, name: str) -> bool:
    """A method of a module takes several entries of the argument: it is moved as a whole."""
    keys = {
        module.text(each.slice)
        for each in module.nodes(ast.Subscript, function)
        if isinstance(each.value, ast.Name)
        and each.value.id == name
        and isinstance(each.slice, ast.Constant)
        and isinstance(each.slice.value, str)
    }
    return len(keys) > 1 and is_of_module(module, function)


def _was_unpacked(module: Module, lengths: ast.expr) -> bool:
    """`x, lengths = pad_packed_sequence(...)`: these lengths are on the CPU."""
    if not isinstance(lengths, ast.Name):
        return False
    return any(
        isinstance(each.targets[0], ast.Tuple)
        and lengths.id in {getattr(one, "id", "") for one in each.targets[0].elts}
        and module.text(each.value).partition("(")[0].endswith("pad_packed_sequence")
        for each in module.earlier(lengths, ast.Assign)
    )


def _is_decided(module: Module, call: ast.Call) -> bool:
    return any(guard.mentions("cuda", "device", "cpu") for guard in module.guards_of(call))


def _to_cpu(module: Module, lengths: ast.expr) -> Fix | None:
    if not isinstance(lengths, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
        return None
    edit = module.insert_after(lengths, ".cpu()")
    return module.fix("move the lengths to the CPU", Safety.UNSAFE, edit)
