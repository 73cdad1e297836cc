"""Findings and silences that rest on what a name stands for, and not on how it is spelled."""

from __future__ import annotations

import pytest

from tensortrail.analyzer.choosing.triggers import may_flag
from tensortrail.rules import all_rules
from tensortrail.testing.examples import run

BY_VALUE = {
    "a rank": (
        "SHD431",
        "import torch.distributed as dist\n\ndef report(loss):\n    me = dist.get_rank()\n"
        "    if me == 0:\n        dist.all_reduce(loss)  # flagged\n",
    ),
    "a rank of the environment, kept by the object": (
        "SHD431",
        "import os\nimport torch.distributed as dist\n\nclass Job:\n    def __init__(self):\n"
        "        self.me = int(os.environ['LOCAL_RANK'])\n\n    def report(self, loss):\n"
        "        if self.me == 0:\n            dist.all_reduce(loss)  # flagged\n",
    ),
    "a device that is chosen at the top of the file": (
        "DEV521",
        "import torch\nfrom torch import nn\n\n"
        "DEVICE = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "net = nn.Embedding(1000, 64).to(DEVICE)\nids = torch.randint(1000, (1, 8))  # flagged\n"
        "print(net(ids).shape)\n",
    ),
    "what a module is moved to": (
        "DEV521",
        "import torch\nfrom torch import nn\n\ndef main(gpu):\n    net = nn.Linear(8, 8).to(gpu)\n"
        "    return net(torch.randn(2, 8))  # flagged\n",
    ),
    "what a module is cast to": (
        "DEV521",
        "import torch\nfrom torch import nn\n\ndef main(kind):\n"
        "    net = nn.Linear(8, 8).to(kind)\n    return net(torch.randn(2, 8, dtype=kind))\n",
    ),
    "a load under such a rank": (
        "DEV631",
        "import torch\nimport torch.distributed as dist\n\ndef main(model):\n"
        "    dist.init_process_group('nccl')\n    me = dist.get_rank()\n    if me > 0:\n"
        "        return model\n    return torch.load('init.pt', map_location='cuda:0')\n",
    ),
    "a device among other imports": (
        "DEV590",
        "import torch as th\n\ndef fits(net, size, where: th.device):\n    net.to(where)\n"
        "    return th.cuda.mem_get_info()[0] > size  # flagged\n",
    ),
    "a tensor in an annotation": (
        "DEV511",
        "import functools\nimport torch as th\n\n@functools.lru_cache\n"
        "def signs(n: int) -> th.Tensor:  # flagged\n    made = th.ones(n, device='cuda')\n"
        "    return twice(made)\n",
    ),
    "the address that a function of the file gives": (
        "STO201",
        "from collections import defaultdict\n\ndef where(t):\n"
        "    return t.untyped_storage().data_ptr()\n\ndef groups(state_dict):\n"
        "    found = defaultdict(set)\n    for name, t in state_dict.items():\n"
        "        found[t.device, where(t)].add(name)  # flagged\n    return found\n",
    ),
    "the class in another file is given the device": (
        "DEV551",
        "class Shader:\n    def __init__(self, where='cpu'):\n"
        "        self.lights = Lights(device=where)\n        self.surface = Surface(4, where)\n\n"
        "    def to(self, where):\n        self.lights = self.lights.to(where)  # flagged\n"
        "        return self\n\n    def shade(self, x):\n"
        "        return self.lights.on(self.surface.at(x))\n",
    ),
    "an optimizer knows no strict": (
        "SHD412",
        "class Trained:\n    def load_state_dict(self, weights, strict=True):\n"
        "        self.opt.load_state_dict(weights)\n\n"
        "    def step(self):\n        self.opt.step()\n",
    ),
    "a process that starts later": (
        "DEV597",
        "import os\nimport subprocess as sp\nimport torch\n\ndef started(script):\n"
        "    print(torch.cuda.get_device_name(0))\n    os.environ['CUDA_VISIBLE_DEVICES'] = '1'\n"
        "    sp.run(['python', script])\n",
    ),
    "the ops of torch under another name": (
        "NEW301",
        "import torch\n\nops = torch.ops.aten\n\nclass Shards(torch.Tensor):\n    @classmethod\n"
        "    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
        "        handlers = {ops.new_empty.default: cls.handle_new_empty}\n"
        "        return handlers[func](args, kwargs)\n\n    @staticmethod\n"
        "    def handle_new_empty(args, kwargs):  # flagged\n"
        "        return Shards([torch.empty_like(each) for each in args[0].parts])\n",
    ),
    "functions of torch under a name of the file": (
        "DEV651",
        "import torch\n\nfun = torch.nn.functional\n\ndef error(layer: torch.nn.Linear, x):\n"
        "    said = layer(x)\n    return fun.cross_entropy(\n"
        "        said, torch.tensor([0, 2]).to(said)  # flagged\n    )\n",
    ),
    "a file of torch under another name": (
        "STO207",
        "import torch as th\n\ndef write(model, rows, paths):\n"
        "    found = th.stack([model(each) for each in rows])\n"
        "    for i, path in enumerate(paths):\n"
        "        th.save({'mean': found[i, 1:].detach()}, path)  # flagged\n",
    ),
    "a collator with its width": (
        "DEV516",
        "from functools import partial\nfrom torch.utils.data import DataLoader\n\n"
        "def padded(width, rows):\n    return rows.cuda()  # flagged\n\n"
        "def loader(rows):\n    given = partial(padded, 8)\n"
        "    return DataLoader(rows, num_workers=2, collate_fn=given)\n",
    ),
}


@pytest.mark.parametrize(("code", "source"), BY_VALUE.values(), ids=BY_VALUE)
def test_names_decide_nothing(code: str, source: str) -> None:
    rule = all_rules()[code]
    marked = [at for at, line in enumerate(source.splitlines(), 1) if "# flagged" in line]
    found = run(rule, source) if may_flag(rule, source.encode()) else ()
    assert sorted({each.site.line for each in found}) == marked
