from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.batches.asked_for import left_where_asked_for
from tensortrail.rules.devices.shared.meetings.described import described
from tensortrail.rules.devices.shared.meetings.library_results import (
    is_loader_of_a_device,
    is_surely_met,
    left_by_its_sibling,
)
from tensortrail.rules.devices.shared.meetings.lying import out_of_place
from tensortrail.rules.devices.shared.meetings.meant import is_certain
from tensortrail.rules.devices.shared.modules.mapped_models import Given, given_to_mapped_models
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import makers_and_callers
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode

_ALWAYS_ON_CPU = ("from_numpy", "frombuffer", "load_file", "DataLoader", "to_tensor", "read_image")


class LibraryResultNotMoved(Rule):
    """A tensor that a library returns on the CPU meets a model or tensor on another device.

    ## What it does
    Some functions always return tensors on the CPU: tokenizers and processors called with
    `return_tensors="pt"`, `torch.from_numpy`, a `DataLoader`, `torch.load` with
    `map_location="cpu"`. Reports such a tensor that an operation of torch combines with one that
    the code has put on a device. As a note, if it is not moved before

    - a model takes it, if the code moves this model, or the model is an argument or a component of
      an object whose code handles devices;
    - an operation combines it with a tensor on a device; or
    - it is passed on together with another result of the same call, which was moved.

    Also reports a tokenizer result that a model takes in a function with a device argument.

    A model with `device_map="auto"` counts as one on a GPU (a note): only if it is spread over
    several devices, hooks move its inputs.

    Not reported: a quantized model with a `device_map`, which may have such hooks on one GPU too.

    ## Why is this bad?
    On a GPU the call raises "Expected all tensors to be on the same device", often on a rare path,
    such as a prompt that is too long. On the CPU everything works.

    ## Fix safety
    No fix is offered: the tensor may be moved where it is made or where it is used.

    ## References
    - transformers documentation, "Preprocessing"
    """

    code = "DEV524"
    name = "library-result-not-moved"
    since = "0.2.0"
    severity = Severity.WARNING
    needs_callers = True
    triggers = (
        "return_tensors",
        ("torch", "map_location"),
        *(("torch", each) for each in _ALWAYS_ON_CPU),
    )
    bad = (
        Bad(
            "import torch\n\n\ndef encode(tokenizer, text_encoder, prompt, device: torch.device):\n"
            "    ids = tokenizer(prompt, return_tensors='pt').input_ids\n"
            "    found = text_encoder(ids)[0]\n    return found.to(device)\n",
            lines=(6,),
        ),
        Bad(
            "import torch\nfrom transformers import CLIPTextModel\n\n\nclass Painter:\n"
            "    def __init__(self, tokenizer, text_encoder: CLIPTextModel):\n"
            "        self.tokenizer = tokenizer\n        self.text_encoder = text_encoder\n\n"
            "    def encode(self, prompt: str, device: torch.device):\n"
            "        ids = self.tokenizer(prompt, return_tensors='pt').input_ids\n"
            "        return self.text_encoder(ids)[0].to(device)\n",
            lines=(12,),
            instead="""\
import torch
from transformers import CLIPTextModel


class Painter:
    def __init__(self, tokenizer, text_encoder: CLIPTextModel):
        self.tokenizer = tokenizer
        self.text_encoder = text_encoder

    def encode(self, prompt: str, device: torch.device):
        ids = self.tokenizer(prompt, return_tensors='pt').input_ids
        return self.text_encoder(ids.to(device))[0]
""",
        ),
        Bad(
            "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n\n"
            "def answer(name: str, question: str):\n"
            "    tokenizer = AutoTokenizer.from_pretrained(name)\n"
            "    model = AutoModelForCausalLM.from_pretrained(name)\n    model.to('cuda')\n"
            "    inputs = tokenizer(question, return_tensors='pt')\n"
            "    return model.generate(**inputs, max_new_tokens=20)\n",
            lines=(9,),
        ),
        Bad(
            "import torch\n\n\n"
            "def is_cut(tokenizer, prompt, device: torch.device):\n"
            "    ids = tokenizer(prompt, truncation=True, return_tensors='pt').input_ids\n"
            "    ids = ids.to(device)\n"
            "    full = tokenizer(prompt, return_tensors='pt').input_ids\n"
            "    return not torch.equal(ids, full)\n",
            lines=(8,),
        ),
        Bad(
            "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n\n"
            "def train(data, device: torch.device):\n    model = nn.Linear(4, 2).to(device)\n"
            "    for rows, labels in DataLoader(data, batch_size=8):\n"
            "        loss = model(rows).sum()\n        loss.backward()\n",
            lines=(9,),
        ),
        Bad(
            "import torch\n\n\n"
            "def encode(tokenizer, text_encoder, prompt: str, device: torch.device):\n"
            "    inputs = tokenizer(prompt, return_tensors='pt')\n"
            "    mask = inputs.attention_mask.to(device)\n"
            "    return text_encoder(inputs.input_ids, attention_mask=mask)[0]\n",
            lines=(7,),
        ),
        Bad(
            "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n\n"
            "def answer(name: str, question: str):\n"
            "    tokenizer = AutoTokenizer.from_pretrained(name)\n"
            "    model = AutoModelForCausalLM.from_pretrained(name, device_map='auto')\n"
            "    inputs = tokenizer(question, return_tensors='pt')\n"
            "    return model.generate(**inputs, max_new_tokens=20)\n",
            lines=(8,),
            instead="from transformers import AutoModelForCausalLM, AutoTokenizer\n\n\n"
            "def answer(name: str, question: str):\n"
            "    tokenizer = AutoTokenizer.from_pretrained(name)\n"
            "    model = AutoModelForCausalLM.from_pretrained(name, device_map='auto')\n"
            "    inputs = tokenizer(question, return_tensors='pt').to(model.device)\n"
            "    return model.generate(**inputs, max_new_tokens=20)\n",
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch import nn\n"
            "from torch.utils.data import DataLoader, Dataset\n\n\n"
            "class Rows(Dataset):\n    def __init__(self, rows, device):\n"
            "        self.rows = rows\n"
            "        self.device = device\n\n    def __getitem__(self, index):\n"
            "        return torch.tensor(self.rows[index]).to(self.device)\n\n\n"
            "def train(data, device: torch.device):\n    model = nn.Linear(4, 2).to(device)\n"
            "    rows = Rows(data, device)\n"
            "    for batch in DataLoader(rows, batch_size=8):\n"
            "        loss = model(batch).sum()\n        loss.backward()\n"
        ),
        Good(
            "import torch\n\n\ndef encode(tokenizer, text_encoder, prompt, device: torch.device):\n"
            "    ids = tokenizer(prompt, return_tensors='pt').input_ids\n"
            "    found = text_encoder(ids.to(device))[0]\n    return found.to(device)\n"
        ),
        Good(
            "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n\n"
            "def answer(name: str, question: str):\n"
            "    tokenizer = AutoTokenizer.from_pretrained(name)\n"
            "    model = AutoModelForCausalLM.from_pretrained(name)\n"
            "    return model.generate(**tokenizer(question, return_tensors='pt'))\n"
        ),
        Good(
            "import torch\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n\n\n"
            "def answer(name: str, question: str):\n"
            "    tokenizer = AutoTokenizer.from_pretrained(name)\n"
            "    model = AutoModelForCausalLM.from_pretrained(\n"
            "        name, device_map='auto', load_in_8bit=True\n    )\n"
            "    return model.generate(**tokenizer(question, return_tensors='pt'))\n"
        ),
        Good(
            "import torch\nfrom transformers import CLIPTextModel\n\n\nclass Painter:\n"
            "    def __init__(self, tokenizer, text_encoder: CLIPTextModel):\n"
            "        self.tokenizer = tokenizer\n        self.text_encoder = text_encoder\n\n"
            "    def encode(self, prompt: str, device: torch.device):\n"
            "        inputs = self.tokenizer(prompt, return_tensors='pt').to(device)\n"
            "        return self.text_encoder(**inputs)[0]\n"
        ),
        Good(
            "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n\n"
            "def train(data, device: torch.device):\n    model = nn.Linear(4, 2).to(device)\n"
            "    for rows, labels in DataLoader(data, batch_size=8):\n"
            "        loss = model(rows.to(device)).sum()\n        loss.backward()\n"
        ),
        Good(
            "import torch\n\n\n"
            "def encode(tokenizer, text_encoder, prompt: str, device: torch.device):\n"
            "    inputs = tokenizer(prompt, return_tensors='pt')\n"
            "    mask = inputs.attention_mask.to(device)\n"
            "    lengths = inputs.attention_mask.sum(1)\n    print(lengths, mask)\n"
            "    return text_encoder(inputs.input_ids.to(device), attention_mask=mask)[0]\n"
        ),
        Good(
            """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Trainer:
    def __init__(self, device):
        self.device = device
        self.net = nn.Linear(4, 2).to(device)

    def train(self, x, y):
        rows = Rows(x.to(self.device), y)
        for x, y in DataLoader(rows, batch_size=8):
            self.net(x).sum().backward()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        for function in makers_and_callers(module, _asks_a_library(module)):
            if sets_up(function):
                continue
            for meeting in module.places(function).meetings:
                inner = module.function_of(meeting.node) or function
                found = out_of_place(module, inner, meeting, Where.HOST)
                if found is None or found[0].by is None or found[0].by in reported:
                    continue
                if is_loader_of_a_device(module, function, found[0].by):
                    continue
                reported.add(found[0].by)
                yield self._reported(module, inner, meeting, *found)
            for meeting in module.places(function).passed:
                made = left_by_its_sibling(meeting)
                if made is not None and made.by is not None and made.by not in reported:
                    reported.add(made.by)
                    yield self._left(module, meeting, made)
        for asked, taken, device in left_where_asked_for(module):
            if asked not in reported:
                reported.add(asked)
                yield self._asked(module, asked, taken, device)
        for each in given_to_mapped_models(module):
            if each.made not in reported:
                reported.add(each.made)
                yield self._mapped(module, each)

    def _reported(
        self,
        module: Module,
        function: FunctionNode,
        meeting: Meeting,
        made: Place,
        there: Place,
    ) -> Finding:
        of_caller = meeting.operation != "module" and not is_certain(module, function, there)
        source = module.qualified(getattr(made.by, "func", meeting.node)) or "the library"
        line = getattr(made.by, "lineno", 0)
        meets = "a model" if meeting.operation == "module" else "a tensor"
        where = described(there)
        return self.finding(
            module,
            meeting.node,
            f"the result of `{source}` in line {line} is on the CPU, but is used with {meets} "
            f"{where}",
            severity=None
            if not of_caller and is_surely_met(module, meeting, made, there)
            else Severity.NOTE,
            trail=(
                (made.by, f"`{source}` always returns CPU tensors"),
                (meeting.node, f"meets {meets} {where}"),
            ),
        )

    def _asked(self, module: Module, asked: ast.Call, taken: ast.Call, device: str) -> Finding:
        source = module.text(asked.func)
        return self.finding(
            module,
            taken,
            f"the result of `{source}` in line {asked.lineno} is on the CPU, and nothing moves it "
            f"to `{device}`, an argument of this function",
            severity=Severity.NOTE,
            trail=((asked, f"`{source}` returns CPU tensors"), (taken, "passed to a model")),
        )

    def _mapped(self, module: Module, given: Given) -> Finding:
        source, line = module.text(given.made.func), given.made.lineno
        return self.finding(
            module,
            given.call,
            f"the result of `{source}` in line {line} is on the CPU: if the model fits on one GPU, "
            "its `device_map` puts it there, and nothing moves its inputs",
            severity=Severity.NOTE,
            trail=(
                (given.loaded, "placed by its device map"),
                (given.made, f"`{source}` returns CPU tensors"),
            ),
        )

    def _left(self, module: Module, meeting: Meeting, made: Place) -> Finding:
        source = module.text(getattr(made.by, "func", meeting.node))
        moved = getattr(meeting.left.moved, "lineno", 0)
        return self.finding(
            module,
            meeting.node,
            f"two results of `{source}` are passed together: line {moved} moved one of them, and "
            "the other is still on the CPU",
            severity=Severity.NOTE,
            trail=(
                (made.by, f"`{source}` always returns CPU tensors"),
                (meeting.left.moved, "moved"),
                (meeting.node, "passed with one that was not moved"),
            ),
        )


def _asks_a_library(module: Module) -> Iterator[ast.Call]:
    yield from module.calls(*_ALWAYS_ON_CPU)
    for keyword in module.nodes(ast.keyword):
        call = module.parent(keyword)
        if keyword.arg in ("return_tensors", "map_location") and isinstance(call, ast.Call):
            yield call
