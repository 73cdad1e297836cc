"""True findings of which nothing comes: they are notes, and what looks like them is more."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.devices.reasons import runs_without_a_gpu
from tests.rules.devices.test_on_the_cpu import findings, severity

COMPARED = """
import torch

def placed(x: torch.Tensor, y: torch.Tensor, device):
    if x.device {sign} "cpu":
        {step}
    {last}
"""


@pytest.mark.parametrize(
    ("sign", "step", "last", "expected"),
    [
        ("!=", "x = x.cpu()", "return x", Severity.NOTE),
        ("!=", "return x.to(device)", "return x", Severity.NOTE),
        ("!=", "x = x.cuda()", "return x", Severity.ERROR),
        ("!=", "x = x.cpu(); print('moved')", "return x", Severity.NOTE),
        ("!=", "x = x.cpu(); x.add_(1)", "return x", Severity.ERROR),
        ("!=", "x = x.cpu() + 1", "return x", Severity.ERROR),
        ("==", "x = x.to(device)", "return x", Severity.ERROR),
    ],
)
def test_a_branch_that_only_moves(sign: str, step: str, last: str, expected: Severity) -> None:
    assert severity("DEV501", COMPARED.format(sign=sign, step=step, last=last)) is expected


def test_a_choice_between_a_move_and_none() -> None:
    choice = """
    import torch

    def placed(x: torch.Tensor, rows, other):
        return use(rows if x.device == "cpu" else torch.from_numpy({moved}).float().to(x.device))
    """
    assert severity("DEV501", choice.format(moved="rows")) is Severity.NOTE
    assert severity("DEV501", choice.format(moved="other")) is Severity.ERROR


def test_what_is_made_like_another_may_lie_there() -> None:
    made = """
    import torch
    from torch import nn

    def start(batch, device):
        mask = nn.Parameter({factory})
        mask.to(device)
        return mask
    """
    assert severity("DEV504", made.format(factory="torch.zeros_like(batch)")) is Severity.WARNING
    assert severity("DEV504", made.format(factory="torch.zeros(2)")) is Severity.ERROR


LOADED = """
import torch

DEVICE = {device}

def run(model, loader, path, optimizer):
    for batch in loader:
        {step}
        optimizer.step()
    model.load_state_dict(torch.load(path))
    {move}
    return model
"""


@pytest.mark.parametrize(
    ("device", "step", "move", "expected"),
    [
        ("'cuda'", "model(batch).backward()", "model.eval()", Severity.NOTE),
        ("'cuda'", "model(batch)", "model.eval()", Severity.WARNING),
        ("'cuda'", "model(batch)", "if use_gpu: model.cuda()", Severity.WARNING),
        ("'cpu'", "model(batch)", "model.to(DEVICE)", Severity.WARNING),
        ("'cuda'", "model(batch)", "batch.to(DEVICE)", Severity.WARNING),
    ],
)
def test_a_file_that_is_loaded_where_it_was_saved(
    device: str, step: str, move: str, expected: Severity
) -> None:
    source = runs_without_a_gpu(LOADED.format(device=device, step=step, move=move))
    assert severity("DEV506", source) is expected


KEPT = """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self, rows, device):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.scale = {value}

    def forward(self, x: torch.Tensor):
        return x * self.scale
"""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("torch.arange(3)", Severity.WARNING),
        ("torch.arange(3).to(device)", Severity.NOTE),
        ("torch.arange(3, device=device)", Severity.NOTE),
        ("torch.arange(3, device='cuda:0')", Severity.WARNING),
        ("nn.Parameter(torch.ones(3, device=device)).float()", None),
    ],
)
def test_a_plain_attribute_that_is_made_where_told(value: str, expected: Severity | None) -> None:
    assert severity("OFF107", KEPT.format(value=value)) is expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("x.device == 'cpu'", None),
        ("not x.device != 'cpu'", None),
        ("x.device != 'cpu'", Severity.ERROR),
        ("x.device.type == 'cpu'", Severity.ERROR),
        ("y.device == 'cpu'", Severity.ERROR),
    ],
)
def test_a_move_in_a_branch_that_is_never_taken(test: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def placed(x: torch.Tensor, y: torch.Tensor, device):
        if {test}:
            x.to(device)
        return x
    """
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("use", "expected"), [("len(self.ids)", Severity.NOTE), ("x * self.ids", Severity.WARNING)]
)
def test_a_table_that_is_only_counted(use: str, expected: Severity) -> None:
    source = f"""
    import torch
    from torch import nn

    class Table(nn.Module):
        def __init__(self, names):
            super().__init__()
            self.register_buffer("rows", torch.zeros(3))
            self.ids = torch.tensor([len(each) for each in names])

        def forward(self, x):
            return x * self.rows, {use}
    """
    assert severity("DEV530", source) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("self._moved(y)", Severity.NOTE),
        ("self._moved(y, False)", Severity.WARNING),
        ("self._moved(y, cut=False)", Severity.NOTE),
        ("self._moved(y, cut=x)", Severity.WARNING),
        ("self._moved(y, **x)", Severity.WARNING),
        ("other._moved(y)", Severity.WARNING),
        ("y", Severity.WARNING),
    ],
)
def test_what_is_done_on_request_and_never_asked_for(call: str, expected: Severity) -> None:
    source = f"""
import torch

class Shift(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = torch.nn.Linear(n, n)

    def _moved(self, y, cut=False):
        z = self.mix(y)
        if cut:
            z = z * torch.linspace(0, 1, 3)
        return z

    def forward(self, x: torch.Tensor, y, other):
        return {call}
"""
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(("later", "expected"), [("device", None), ("place", Severity.WARNING)])
def test_a_choice_that_the_launcher_takes_back(later: str, expected: Severity | None) -> None:
    source = f"""
import torch
from launcher import get_current_device, is_distributed

def main(net):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if is_distributed():
        {later} = get_current_device()
    return net.to(device), net.copy().to({later})
"""
    assert severity("DEV510", source) is expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [("torch.tensor([0])", Severity.NOTE), ("torch.linspace(0, 1, 3)", Severity.WARNING)],
)
def test_a_value_that_stands_for_none_until_it_is_made(first: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Mean(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)
        self.table = {first}

    def _make(self, n):
        self.table = torch.linspace(0, 1, n)

    def forward(self, x: torch.Tensor):
        return torch.matmul(self.mix(x), self.table)
"""
    assert severity("OFF107", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"), [("torch.empty(0)", None), ("torch.ones(3)", Severity.WARNING)]
)
def test_a_tensor_without_elements_needs_no_device(made: str, expected: Severity | None) -> None:
    source = f"""
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        device = x.device
        return x, {made}
"""
    assert severity("DEV527", source) is expected


@pytest.mark.parametrize(
    ("device", "expected"), [("cpu", Severity.NOTE), ("cuda", Severity.WARNING)]
)
def test_a_script_that_names_the_cpu_alone(device: str, expected: Severity) -> None:
    source = f"""
import torch
device = "{device}"
x = torch.ones(3, device=device)
print(x * torch.arange(3))
"""
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("keeper", "expected"),
    [("Meter()", None), ("[]", Severity.WARNING), ("list()", Severity.WARNING)],
)
def test_a_meter_may_keep_the_number_alone(keeper: str, expected: Severity | None) -> None:
    source = f"""
    from tools import Meter

    def train(model, loader, optimizer):
        kept = {keeper}
        for batch in loader:
            loss = model(batch)
            loss.backward()
            optimizer.step()
            kept.{"add" if keeper == "Meter()" else "append"}(loss)
        return kept
    """
    assert severity("STO212", source) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def f(net, path):\n    net.load_state_dict(torch.load(path))", Severity.WARNING),
        ("def f(net, path):\n    net.load_state_dict(torch.load(path, mmap=True))", Severity.NOTE),
        (
            "def f(net, path):\n    if torch.cuda.is_available():\n"
            "        net.load_state_dict(torch.load(path))",
            Severity.NOTE,
        ),
        (
            "def f(net, path):\n    if not torch.cuda.is_available():\n"
            "        net.load_state_dict(torch.load(path))",
            Severity.WARNING,
        ),
        ("def f(a, b, device):\n    torch.save(torch.load(a)['state_dict'], b)", Severity.WARNING),
        (
            "def f(net):\n    folder = snapshot_download('owner/net')\n"
            "    net.load_state_dict(torch.load(folder + '/net.pt'))",
            Severity.NOTE,
        ),
        (
            "def f(net, name):\n    folder = snapshot_download(name)\n"
            "    net.load_state_dict(torch.load(folder + '/net.pt'))",
            Severity.WARNING,
        ),
        (
            "class Scores:\n    def __init__(self, net, path='a.pt'):\n"
            "        with open(path, 'rb') as f:\n"
            "            net.load_state_dict(torch.load(f))\n\n"
            "def g(net, path):\n    Scores(net)",
            Severity.NOTE,
        ),
        (
            "class Scores:\n    def __init__(self, net, path='a.pt'):\n"
            "        with open(path, 'rb') as f:\n"
            "            net.load_state_dict(torch.load(f))\n\n"
            "def g(net, path):\n    Scores(net, path)",
            Severity.WARNING,
        ),
        (
            "class Rows:\n    def read(self, path):\n"
            "        self.rows = list(torch.load(path).items())",
            Severity.WARNING,
        ),
        (
            "def f(net, path):\n    new = {}\n    for k, v in torch.load(path).items():\n"
            "        new[k[7:]] = v\n    net.load_state_dict(new)\n    net.cuda()",
            Severity.NOTE,
        ),
        (
            "def f(net, path):\n    state, new = torch.load(path)['model'], {}\n"
            "    for k, v in state.items():\n        new[k[7:]] = v\n"
            "    net.load_state_dict(new)\n    net.to(torch.cuda.current_device())",
            Severity.WARNING,
        ),
        (
            "def f(net, path, rank):\n    torch.cuda.set_device(rank)\n"
            "    state = torch.load(path)['model']\n"
            "    net.load_state_dict(state)\n    net.to(torch.cuda.current_device())",
            Severity.WARNING,
        ),
        (
            "def f(path, device):\n    net = torch.load(path)['model']\n    net.to(device).eval()",
            Severity.WARNING,
        ),
        (
            "def f(fsdp, net, path):\n    state = torch.load(path)['optim']\n"
            "    return fsdp.scatter_full_optim_state_dict(state, net)",
            Severity.NOTE,
        ),
        (
            "def f(net, data, name):\n    state = torch.load(data + name)\n"
            "    net.load_state_dict(state)\n\ndef g(net, data, x):\n    f(net, data, x)",
            Severity.WARNING,
        ),
    ],
)
def test_files_that_are_mostly_of_the_cpu(body: str, expected: Severity) -> None:
    source = f"import torch\n{body}\n"
    assert severity("DEV506", runs_without_a_gpu(source)) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.pools[0].to(x.device)", Severity.NOTE),
        ("self.other[0].to(x.device)", Severity.ERROR),
        ("return self.pools[x.ndim](x.to(self.device)).to(x.device)", Severity.NOTE),
        ("x = self.other[0](x.to(self.device))", Severity.ERROR),
    ],
)
def test_a_class_may_move_what_it_hides(body: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pools = [nn.Conv1d(n, n, 3)]

    def forward(self, x):
        {body}
        return self.pools[0](x)
"""
    assert severity("DEV544", source) is expected


@pytest.mark.parametrize(
    ("where", "expected"), [("x.device", Severity.NOTE), ("self.device", Severity.ERROR)]
)
def test_hidden_modules_may_follow_their_input(where: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Kernel(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Conv1d(n, n, 3)

    def forward(self, x):
        self.weight.to({where})
        return self.weight(x)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.kernels = [Kernel(n)]

    def forward(self, x):
        return self.kernels[0](x)
"""
    assert severity("DEV544", source) is expected


@pytest.mark.parametrize(
    ("weight", "expected"),
    [("self.size = n", None), ("self.weight = nn.Parameter(torch.ones(n))", Severity.NOTE)],
)
def test_a_module_without_weights_needs_no_device(weight: str, expected: Severity | None) -> None:
    source = f"""
import torch
from torch import nn

class Pool(nn.Module):
    def __init__(self, n):
        super().__init__()
        {weight}

class Pitch:
    def __init__(self, device=None):
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.pool = Pool(3).to(device)
"""
    assert severity("DEV570", source) is expected


@pytest.mark.parametrize(
    ("wrapped", "expected"), [("model", Severity.NOTE), ("other", Severity.NOTE)]
)
def test_training_goes_on_from_files_of_wrapped_models(wrapped: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

def train(args, net, other):
    model = nn.DataParallel(net)
    {wrapped}.load_state_dict(torch.load(args.resume, map_location="cpu"))
    torch.save(model.state_dict(), args.out)
"""
    assert severity("SHD409", source) is expected


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        ("cuda()", Severity.ERROR),
        ("to('cuda:0')", Severity.ERROR),
        ("to(torch.device('cuda'))", Severity.ERROR),
        ("to(device)", Severity.WARNING),
    ],
)
def test_a_chosen_device_may_be_the_cpu(move: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n)).{move}
"""
    assert severity("DEV545", source) is expected


UNUSED = """
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n){given}).cuda()

    def forward(self, x):
        {step}
        return x
"""


@pytest.mark.parametrize(
    ("given", "step", "expected"),
    [
        ("", "x = x * self.scale", Severity.ERROR),
        (", requires_grad=False", "x = x * self.scale", Severity.WARNING),
        ("", "self.scale = x.mean()\n        x = x * self.scale", Severity.NOTE),
        ("", "x = x * self.scale; self.scale = x.mean()", Severity.ERROR),
        ("", "x = x * 2", Severity.NOTE),
    ],
)
def test_a_lost_parameter_that_nobody_misses(given: str, step: str, expected: Severity) -> None:
    assert severity("DEV545", UNUSED.format(given=given, step=step)) is expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [("return x", Severity.NOTE), ("self.maybe_free_model_hooks()", Severity.WARNING)],
)
def test_a_pipeline_may_know_nothing_of_offloading(last: str, expected: Severity) -> None:
    source = f"""
import torch
from diffusers import DiffusionPipeline

class Pipe(DiffusionPipeline):
    def __call__(self, x):
        device = self._execution_device
        x = self.vae.encode(x.to(self.vae.device)).to(device)
        {last}
"""
    assert severity("DEV505", source) is expected


@pytest.mark.parametrize(
    ("by_hand", "expected"),
    [
        ("net.weight = nn.Parameter(net.weight.detach().cuda())", None),
        ("net.weight.data = net.weight.data.cuda()", None),
        ("for p in net.parameters(): p.data = p.data.cuda()", None),
        ("for _, p in net.named_parameters(): p.data = p.data.to('cuda')", None),
        ("for p in net.parameters(): p.requires_grad_(False)", Severity.ERROR),
        ("net.steps = 3", Severity.ERROR),
    ],
)
def test_parameters_that_are_replaced_one_by_one(by_hand: str, expected: Severity | None) -> None:
    program = f"""
    from torch import nn

    def answer(x):
        net = nn.Linear(4, 4)
        {by_hand}
        return net(x.to("cuda"))
    """
    assert severity("DEV542", program) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("", Severity.NOTE), (", **kwargs", Severity.WARNING)],
)
def test_a_constructor_may_use_its_device_for_nothing(given: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Packed(nn.Module):
    def __init__(self, n, device=None, dtype=None):
        super().__init__()
        kwargs = {{"device": device, "dtype": dtype}}
        self.register_buffer("weight", torch.empty((n, n)))
        self.out = nn.Linear(n, n{given})
"""
    assert severity("NEW309", source) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("Packed(3)", Severity.NOTE),
        ("Packed(3, device=x.device)", Severity.WARNING),
        ("Packed(3, x.device)", Severity.WARNING),
        ("Packed(**x)", Severity.WARNING),
        ("x", Severity.WARNING),
    ],
)
def test_a_device_that_no_caller_gives(call: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Packed(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n))

def packed(x):
    return {call}
"""
    assert severity("DEV527", source) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("x[torch.arange(n).unsqueeze(-1), best]", None),
        ("x[torch.arange(n)]", None),
        ("x + torch.arange(n)", Severity.WARNING),
    ],
)
def test_an_index_may_lie_on_the_cpu(rows: str, expected: Severity | None) -> None:
    source = f"""
import torch

def picked(x, best, n, device):
    return {rows}
"""
    assert severity("DEV527", source) is expected


@pytest.mark.parametrize(
    ("given", "made", "expected"),
    [
        ("device='cuda'", "net = Encoder(8, device)\n    net.to(device)", Severity.NOTE),
        ("device='cuda'", "net = Encoder(8, device).to(device)", Severity.NOTE),
        (
            "device='cuda'",
            "net = Encoder(8, device=device)\n    net.to('cuda:1')",
            Severity.WARNING,
        ),
        ("device='cuda'", "net = Encoder(8)\n    net.to(device)", Severity.WARNING),
        ("device='cuda'", "net = None", Severity.NOTE),
        ("device=torch.device('cuda')", "net = None", Severity.NOTE),
        ("device", "net = None", Severity.NOTE),
        ("device=None", "net = None", Severity.NOTE),
    ],
)
def test_who_makes_a_module_may_move_it_where_it_was_made(
    given: str, made: str, expected: Severity
) -> None:
    source = f"""
import torch
from torch import nn

class Encoder(nn.Module):
    def __init__(self, n, {given}):
        super().__init__()
        self.device = device
        self.embed = nn.Embedding(n, n)

    def forward(self, ids):
        return self.embed(ids + torch.arange(ids.shape[1], device=self.device))

def build(device):
    {made}
    return net
"""
    assert severity("DEV514", source) is expected


@pytest.mark.parametrize(
    ("given", "expected"), [("device", None), ("torch.device(device)", Severity.WARNING)]
)
def test_the_name_of_a_parameter_says_no_more_than_the_string_beside_it(
    given: str, expected: Severity | None
) -> None:
    source = f"""
import torch

class Timer:
    def __init__(self, device=None):
        if device is None:
            self.device = "cuda:0"
        else:
            self.device = {given}

    def starts(self):
        return self.device == "cuda:0"
"""
    assert severity("DEV501", source) is expected


@pytest.mark.parametrize(
    ("bits", "expected"), [("load_in_8bit=True", Severity.WARNING), ("load_in_4bit=True", None)]
)
def test_a_configuration_says_how_a_model_is_quantized(
    bits: str, expected: Severity | None
) -> None:
    source = f"""
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

config = BitsAndBytesConfig({bits})
model = AutoModelForCausalLM.from_pretrained("opt", quantization_config=config)
model.cuda()
"""
    assert severity("DEV509", source) is expected


@pytest.mark.parametrize(
    ("chosen", "joins", "expected"),
    [
        ("rank", "torch.distributed.init_process_group('nccl')", Severity.WARNING),
        ("0", "torch.distributed.init_process_group('nccl')", Severity.NOTE),
        ("rank", "pass", Severity.NOTE),
    ],
)
def test_each_of_many_processes_loads_to_the_gpu_of_the_saver(
    chosen: str, joins: str, expected: Severity
) -> None:
    source = f"""
import torch

def worker(rank, model):
    {joins}
    torch.cuda.set_device({chosen})
    model.load_state_dict(torch.load("last.pt"))
"""
    assert severity("DEV506", source) is expected


PLAIN = """
import torch
from accelerate import Accelerator
from torch import nn

class Runner:
    def __init__(self, net, device=None):
        self.net = net
        {init}

    def restore(self, path, turn):
        {first}
        self.net.load_state_dict(torch.load(path))

    def other(self):
        {other}
"""
CURRENT = "self.where = torch.cuda.current_device(); net.to(self.where)"


@pytest.mark.parametrize(
    ("init", "first", "other", "says"),
    [
        ("pass", "pass", "pass", "whether or not"),
        ("pass", "fast = torch.cuda.is_available()", "pass", "a GPU, where line 12"),
        ("pass", "assert torch.cuda.is_available()", "pass", "whether or not"),
        ("pass", "if not torch.cuda.is_available(): raise ValueError", "pass", "whether or not"),
        ("pass", "pass", "if torch.cuda.is_available(): pass", "a GPU, where line 16"),
        ("self.where = device; net.to(self.where)", "pass", "pass", "a GPU, where line 9"),
        ("self.where = 'cuda'", "pass", "self.net.to(self.where)", "whether or not"),
        (CURRENT, "pass", "pass", "whether or not"),
        ("pass", "rows = torch.ones(3); rows.to(rows.dtype)", "pass", "whether or not"),
        ("pass", "where = torch.device(self.options['where'])", "pass", "where line 12"),
        ("self.launcher = Accelerator()", "pass", "pass", "as line 9 shows, several processes"),
        ("pass", "groups.get_model_rank()", "pass", "as line 12 shows, several processes"),
        ("pass", "nn.parallel.DistributedDataParallel(self.net, device_ids=[turn])", "pass",
         "as line 12 shows, several processes"),
        ("pass", "named = lambda rank: rank", "pass", "as line 12 shows, several processes"),
        ("pass", "if turn: torch.load(path, map_location='cpu')", "pass", "says where the same"),
        ("pass", "if turn: torch.load(turn, map_location='cpu')", "pass", "whether or not"),
    ],
)  # fmt: skip
def test_why_it_matters_where_a_file_is_loaded(
    init: str, first: str, other: str, says: str
) -> None:
    (only,) = (
        each
        for each in findings("DEV506", PLAIN.format(init=init, first=first, other=other))
        if says in each.message
    )
    expected = Severity.NOTE if says == "whether or not" else Severity.WARNING
    assert only.severity is expected
    assert len(only.trail) == (expected is Severity.WARNING)


@pytest.mark.parametrize(
    ("device", "expected"),
    [("'cuda'", Severity.NOTE), ("pick()", Severity.WARNING)],
)
def test_a_device_that_all_callers_write_out(device: str, expected: Severity) -> None:
    source = f"""
import torch

def restored(model, path, device):
    model.load_state_dict(torch.load(path))
    return model.to(device)

def main(model, path):
    device = {device}
    return restored(model, path, device)
"""
    assert severity("DEV506", source) is expected


@pytest.mark.parametrize(("mode", "expected"), [("wb", Severity.NOTE), ("rb", Severity.WARNING)])
def test_a_file_whose_bytes_the_class_writes(mode: str, expected: Severity) -> None:
    source = f"""
import torch

class Net:
    def fetch(self, answer):
        with open(self.path, "{mode}") as file:
            self.take(file, answer)

    def read(self, device):
        self.net.to(device).load_state_dict(torch.load(self.path))
"""
    assert severity("DEV506", source) is expected


@pytest.mark.parametrize(
    ("loss", "expected"),
    [("nn.CrossEntropyLoss()", None), ("nn.Linear(4, 4)", Severity.WARNING)],
)
def test_a_loss_without_weights_lies_nowhere(loss: str, expected: Severity | None) -> None:
    source = f"""
from torch import nn
from warp import CTCLoss

def train(x, y, device, warped):
    if warped:
        criterion = CTCLoss()
    else:
        criterion = {loss}.to(device)
    return criterion(x, y)
"""
    assert severity("DEV601", source) is expected


@pytest.mark.parametrize(("kept", "expected"), [("y", Severity.WARNING), ("y.to(device)", None)])
def test_lists_may_be_joined_in_one_statement(kept: str, expected: Severity | None) -> None:
    source = f"""
import torch

def score(model, loader, device):
    best, labels = [], []
    for x, y in loader:
        best.append(model(x.to(device)).argmax(1))
        labels.append({kept})
    best, labels = torch.cat(best), torch.cat(labels)
    return (best == labels).float().mean()
"""
    assert severity("DEV540", source) is expected


@pytest.mark.parametrize(
    ("index", "expected"), [("rows, columns", Severity.NOTE), ("columns", Severity.WARNING)]
)
def test_indices_of_a_store_come_to_the_tensor(index: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Masked(nn.Module):
    def forward(self, x):
        mask = torch.ones(8, 8)
        rows = torch.arange(8).view(-1, 1)
        columns = x.argsort(1)
        mask[{index}] = 0
        return mask
"""
    assert severity("DEV521", source) is expected


def test_what_fails_first_is_loaded_again_with_a_place() -> None:
    source = """
import torch

def restored(model, path):
    try:
        state = torch.load(path)
    except RuntimeError:
        state = torch.load(path, map_location="cpu")
    model.load_state_dict(state)
"""
    source = runs_without_a_gpu(source)
    assert severity("DEV506", source) is Severity.NOTE


@pytest.mark.parametrize(
    ("last", "expected"),
    [("net.load_state_dict(state)", Severity.NOTE), ("return state", Severity.ERROR)],
)
def test_a_state_that_is_loaded_need_not_be_moved(last: str, expected: Severity) -> None:
    source = f"""
import torch

def prepared(net, table: torch.Tensor, device: torch.device):
    state = {{"table": table.float()}}
    state["table"].to(device)
    {last}
"""
    assert severity("DEV504", source) is expected


RESUMED = """
import torch
import torch.distributed as dist

def f(net, folder, device):
    {before}
    rank = dist.get_rank()
    {step}
    net.load_state_dict(torch.load(path))
"""
ALL_USE_ONE = "all of them on that one GPU"


@pytest.mark.parametrize(
    ("before", "step", "says"),
    [
        ("net.to(device)", "path = folder + 'a.pt'", ALL_USE_ONE),
        ("pass", "path = f'{folder}/{rank}.pt'", ""),
        ("pass", "path = folder + 'a.pt'\n    if rank != 0:\n        return", ""),
        ("net.cuda()", "path = f'{folder}/{rank}.pt'; net.to(device)", ""),
        ("pass", "path = f'{folder}/{rank}.pt'; net.to(device)", "a machine without a GPU"),
    ],
)
def test_a_load_of_which_less_can_be_said(before: str, step: str, says: str) -> None:
    (found,) = findings("DEV506", RESUMED.format(before=before, step=step))
    assert says in found.message
    assert found.severity is (Severity.WARNING if says else Severity.NOTE)


COPIED = """
from torch import nn

class Made(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.register_buffer("{name}", table, persistent=False)

class Rotated(nn.Module):
    def __init__(self, other):
        super().__init__()
        for name, value in other.named_buffers():
            if name.startswith("scale_"):
                self.register_buffer(name, value.data)
"""


@pytest.mark.parametrize(("name", "expected"), [("scale_a", Severity.WARNING), ("table", None)])
def test_buffers_that_are_copied_by_their_name(name: str, expected: Severity | None) -> None:
    assert severity("NEW308", COPIED.format(name=name)) is expected


@pytest.mark.parametrize(
    ("read", "expected"), [("nn.Linear(self.width, 2)", None), ("nn.Linear(3, 2)", "warning")]
)
def test_a_property_that_is_read_where_the_module_is_made(read: str, expected: str | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.inner = nn.Linear(size, size)
            self.last = {read}

        @property
        def width(self):
            return self.inner(torch.zeros(1, 3)).shape[1]

        def forward(self, x):
            return self.last(self.inner(x))
    """
    assert severity("DEV521", source) == expected
