"""What readers of real trees found wrong: silent now, with a neighbour that is still reported."""

from __future__ import annotations

import ast

import pytest

from tensortrail.analyzer.places.attributes import the_module_itself
from tensortrail.findings import Severity
from tests.rules.devices.test_on_the_cpu import findings, severity


@pytest.mark.parametrize(
    ("used", "expected"),
    [("out['ids'] = x[:, self.ids]\n        out['seen'] = self.ids", Severity.NOTE),
     ("out['ids'] = x + self.ids", Severity.WARNING)],
)  # fmt: skip
def test_an_index_that_is_handed_on_may_stay(used: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.ids = torch.LongTensor([3, 2, 1])

    def forward(self, x, out):
        {used}
        return out
"""
    assert severity("DEV530", source) is expected


@pytest.mark.parametrize("kind", ["dtype", "x.type()"])
def test_a_variable_may_name_a_type_with_its_device(kind: str) -> None:
    source = f"""
    import torch
    from torch import nn

    class Head(nn.Module):
        def forward(self, x, dtype):
            grid = torch.arange(x.shape[1]).type({kind})
            return x + grid
    """
    assert severity("DEV521", source) is None


def test_the_first_of_two_says_the_device_of_the_second() -> None:
    source = """
    import torch

    def batched(x, device=None):
        return torch.as_tensor(x, device=device)

    def update(one, other):
        first = batched(one)
        second = batched(other, device={device})
        return first, second
    """
    assert severity("DEV534", source.format(device="first.device")) is None
    assert severity("DEV534", source.format(device="one.device")) is Severity.WARNING


def test_modules_of_two_containers_are_registered_by_one_of_them() -> None:
    source = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.order = []
            layers = []
            for _ in range(n):
                layer = nn.Linear(n, n)
                self.order.append(layer)
                {also}
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for layer in self.order:
                x = layer(x)
            return x
    """
    assert severity("DEV544", source.format(also="layers.append(layer)")) is None
    assert severity("DEV544", source.format(also="pass")) is Severity.ERROR


@pytest.mark.parametrize(
    ("call", "model"),
    [
        ("self.net.eval().requires_grad_(False)", "self.net"),
        ("net", "net"),
        ("net.clone()", "net.clone()"),
    ],
)
def test_methods_that_give_the_module_back(call: str, model: str) -> None:
    node = ast.parse(call, mode="eval").body
    assert ast.unparse(the_module_itself(node)) == model


def test_a_default_of_the_device_itself() -> None:
    source = """
    import torch

    def style(x, device="cuda" if torch.cuda.is_available() else "cpu"):
        return x.to(device)
    """
    assert severity("DEV510", source) is None


def test_both_forms_of_a_device_are_asked_for() -> None:
    source = """
    import torch

    def to(x, device: torch.device | str):
        if device == "npu" {also}:
            return x.cpu()
        return x.to(device)
    """
    both = "or isinstance(device, torch.device) and device.type == 'npu'"
    assert severity("DEV501", source.format(also=both)) is None
    assert severity("DEV501", source.format(also="")) is Severity.WARNING


def test_a_helper_of_to_moves_the_rest() -> None:
    source = """
    import torch

    class Batch:
        def __init__(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor):
            self.x, self.y, self.z = x, y, z

        def _labels_to(self, device):
            {moves}

        def to(self, device):
            self._labels_to(device)
            self.x = self.x.to(device)
            return self
    """
    both = "self.y, self.z = self.y.to(device), self.z.to(device)"
    assert severity("OFF107", source.format(moves=both)) is None
    assert severity("OFF107", source.format(moves="pass")) is Severity.WARNING


def test_a_method_that_only_the_constructor_calls() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, shape):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.size = self.size_of(shape)

        def size_of(self, shape):
            return self.conv(torch.zeros(1, *shape)).numel()

        def forward(self, x):
            return self.conv(x){also}
    """
    assert severity("DEV521", source.format(also="")) is None
    called_later = " / self.size_of(x.shape)"
    assert severity("DEV521", source.format(also=called_later)) is Severity.WARNING


def test_a_copy_of_a_tensor_lies_where_the_tensor_does() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor, y: torch.Tensor):
            return self.net(x) - torch.tensor(y, dtype=torch.long){part}
    """
    assert severity("DEV521", source.format(part="")) is None
    assert severity("DEV521", source.format(part=" + torch.ones(3)")) is Severity.WARNING


def test_lengths_are_packed_with_on_the_cpu() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Embedding(3, 3)

        def step(self, parts):
            return self.rows(torch.tensor({what}))
    """
    assert severity("NEW305", source.format(what="[each.shape[0] for each in parts]")) is None
    assert severity("NEW305", source.format(what="[0, 1]")) is Severity.NOTE


@pytest.mark.parametrize(
    ("kept", "expected"),
    [("torch.device(f'cuda:{rank}')", None), ("torch.device(rank)", Severity.NOTE)],
)
def test_an_object_that_is_for_gpus_alone(kept: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    class Worker:
        def __init__(self, rank):
            self._device = {kept}

        @property
        def device(self):
            return self._device

        def sums(self, rows):
            rows = torch.tensor(rows).to(self.device)
            return rows, torch.zeros(3).cuda()
    """
    assert severity("DEV510", source) is expected


def test_the_same_run_saved_the_file() -> None:
    source = """
    import torch

    def fit(trainer, model, checkpoint, device):
        trainer.fit(model)
        model.to(device).load_state_dict(torch.load(checkpoint.{path}))
    """
    assert severity("DEV506", source.format(path="best_model_path")) is Severity.NOTE
    assert severity("DEV506", source.format(path="path")) is Severity.WARNING


def test_what_is_called_is_a_module_or_function() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.rows = {made}

        def forward(self, x):
            return {used}
    """
    table = "nn.Embedding.from_pretrained(torch.eye(3))"
    assert severity("DEV530", source.format(made=table, used="self.rows(x)")) is None
    assert severity("DEV530", source.format(made="torch.eye(3)", used="self.rows * x")) is not None


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("if device is None: device = chosen()", None), ("pass", Severity.ERROR)],
)
def test_a_function_that_chooses_a_device_itself(choice: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    def batch(n, device=None):
        {choice}
        return torch.ones(n, n, device=device)

    def train(steps):
        model = nn.Linear(3, 3).to("cuda")
        for _ in range(steps):
            model(batch(3)).sum().backward()
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [("torch.normal(0, scale * 0.1)", None),
     ("torch.normal(x, 0.1)", None),
     ("torch.normal(0.0, 0.1, (3, 4))", Severity.ERROR),
     ("torch.normal(0.0, 0.1, size=(3, 4))", Severity.ERROR)],
)  # fmt: skip
def test_numbers_drawn_around_tensors_lie_beside_them(
    drawn: str, expected: Severity | None
) -> None:
    source = f"""
    import torch

    def noisy(x, scale):
        x, scale = torch.tensor(x).to("cuda"), scale.to("cuda")
        return x + {drawn}
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("args.local_rank != -1", None), ("args.local_rank != 0", Severity.ERROR)],
)
def test_whether_there_are_ranks_is_not_asked_of_some(
    condition: str, expected: Severity | None
) -> None:
    source = f"""
    import torch.distributed as dist

    def ready(args):
        if {condition}:
            dist.barrier()
    """
    assert severity("SHD431", source) is expected


def test_the_device_of_a_model_is_where_the_model_lies() -> None:
    source = """
    import torch
    from transformers import AutoModelForSeq2SeqLM

    def answers(name, other):
        model = AutoModelForSeq2SeqLM.from_pretrained(name)
        ids = torch.tensor([[0, 4], [8, 2]], device={device})
        return model(ids)
    """
    assert severity("DEV542", source.format(device="model.device")) is None
    assert severity("DEV542", source.format(device="other.device")) is Severity.WARNING


@pytest.mark.parametrize(
    ("moved", "expected"), [("layers[0] = layers[0].to(device)", None), ("", Severity.WARNING)]
)
def test_a_model_may_be_moved_in_parts(moved: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from transformers import OPTForCausalLM

    class Runner:
        def __init__(self, name, device):
            self.device = device
            self.model = OPTForCausalLM.from_pretrained(name)

        def run(self, batch):
            device = self.device
            layers = self.model.model.decoder.layers
            {moved}
            ids = torch.tensor(batch).to(device)
            return self.model(ids)
    """
    assert severity("DEV521", source) is expected


def test_torch_is_no_accelerator() -> None:
    source = """
    import torch

    def sample(batch, {given}):
        generator = torch.Generator(device=torch.device("cpu"))
        with {given}.autocast("cuda"):
            return batch.cuda(), generator
    """
    assert severity("DEV510", source.format(given="accelerator")) is Severity.NOTE
    assert severity("DEV510", source.format(given="torch").replace(", torch)", ")")) is None


@pytest.mark.parametrize(("then", "expected"), [("", None), ("layers[i](x)", Severity.ERROR)])
def test_each_device_in_turn_may_be_warmed_up(then: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def connect(layers, count):
        x = torch.zeros(1)
        for i in range(count):
            x.to(f"cuda:{{i}}")
            {then}
        return x
    """
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(("name", "expected"), [("output_device", None), ("device", "note")])
def test_the_device_of_the_output_is_not_that_of_the_work(name: str, expected: str | None) -> None:
    source = f"""
    def encode(texts, encoder, {name}=None):
        encoder = encoder.cuda()
        return encoder(texts).to({name})
    """
    found = severity("DEV510", source)
    assert (found and found.value) == expected


@pytest.mark.parametrize(("sender", "expected"), [("0", None), ("1", Severity.ERROR)])
def test_who_receives_does_not_send(sender: str, expected: Severity | None) -> None:
    source = f"""
    import torch.distributed as dist

    def search(study, settings, rank):
        if rank == 0:
            study.optimize()
        else:
            dist.broadcast_object_list(settings, src={sender})
    """
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(
    ("between", "expected"),
    [("quantize(model, device=device)", None),
     ("patch(model)", None),
     ("print(model)", Severity.WARNING),
     ("torch.save(model, name)", Severity.WARNING)],
)  # fmt: skip
def test_another_may_move_the_model(between: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from transformers import AutoModelForCausalLM
    from quantizer.patching import patch, quantize

    def answers(name, device):
        model = AutoModelForCausalLM.from_pretrained(name)
        {between}
        return model(torch.ones(1, device=device))
    """
    assert severity("DEV542", source) is expected


@pytest.mark.parametrize(
    ("taken", "expected"), [("answer.shape[-1]", None), ("answer", Severity.NOTE)]
)
def test_a_model_may_take_the_length_of_what_stays(taken: str, expected: Severity | None) -> None:
    source = f"""
    def asked(tokenizer, model, text, device):
        ids = tokenizer.encode(text).to(device)
        answer = tokenizer(text, return_tensors="pt").input_ids
        return model.generate(ids, {taken})
    """
    assert severity("DEV524", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"), [("nn.Sequential()", None), ("nn.Linear(2, 2)", Severity.ERROR)]
)
def test_an_empty_sequence_has_no_weights(made: str, expected: Severity | None) -> None:
    source = f"""
    from torch import nn

    class Levels(nn.Module):
        def __init__(self):
            super().__init__()
            self.levels = []
            self.levels.append({made})

        def forward(self, x):
            return [level(x) for level in self.levels]
    """
    assert severity("DEV544", source) is expected


def test_what_is_put_back_in_a_loop_is_named() -> None:
    source = """
    from contextlib import contextmanager

    @contextmanager
    def changed(self, **given):
        old_params = {key: getattr(self.params, key) for key in given}
        for key, value in given.items():
            setattr(self.params, key, value)
        yield
        for key, value in old_params.items():
            setattr(self.params, key, value)
    """
    (found,) = findings("OFF106", source)
    assert "`setattr(self.params, key, value)` is never called" in found.message


@pytest.mark.parametrize(
    ("made", "expected"),
    [("Storage(device='cpu', ndim=2)", None), ("prepared(sample)", Severity.ERROR)],
)
def test_the_device_of_an_object_of_a_class_is_no_device(
    made: str, expected: Severity | None
) -> None:
    source = f"""
    from somewhere import Storage, prepared

    def check(sample):
        made = {made}
        if made.ndim == 2 and made.device == "cpu":
            return made
    """
    assert severity("DEV501", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"), [("config.build()", None), ("config.table", Severity.ERROR)]
)
def test_what_a_method_gives_is_not_the_method(made: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    class Layer(torch.nn.Module):
        def forward(self, x) -> torch.Tensor:
            return x

    class Config:
        def build(self) -> "Layer":
            return Layer()

        @property
        def table(self) -> torch.Tensor:
            return torch.zeros(4)

    def start(config: Config, device):
        made = {made}
        made.to(device)
        print(made)
    """
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("settled", "expected"), [("self.device = resolve(device)", None), ("", Severity.WARNING)]
)
def test_a_device_that_a_method_settles_is_the_one_it_was_given(
    settled: str, expected: Severity | None
) -> None:
    source = f"""
    import torch

    class Predictor:
        def to(self, x: torch.Tensor, device: torch.device):
            {settled or "pass"}
            return x.to(self.device)
    """
    assert severity("DEV505", source) is expected


READ = {
    "DEV504": """
import torch

class Solver:
    def __init__(self, n):
        self.h = torch.zeros(n, n)

    def solve(self, w):
        h = self.h
        self.h.cpu()
        {}
        del self.h
        return w @ h
""",
    "DEV548": """
def run(data, {}=None, device="cpu"):
    x = data.to(device)
    return run(x, data)

print(run(1, device="cuda"), run(2, device="cuda"))
""",
    "DEV595": """
class Base:
    def start(self, path, offload_state_to_cpu):
        return path, offload_state_to_cpu

    def again(self, path):
        return self.start(path)

class Below({}):
    def start(self, path, offload_state_to_cpu=False):
        return path
""",
    "OFF112": """
def context_of(owner, lengths, device):
    return owner, lengths, device

class Layer:
    def forward(self, hidden, lengths, device):
        return context_of(self, {})

Layer().forward(1, 2, 3)
""",
    "OFF114": """
def scaled(search, rows, low_memory, device):
    if not low_memory:
        rows = rows.to(device)
    scales = search(rows)
    rows = rows.cpu()
    return scales{}
""",
    "SHD431": """
import torch.distributed as dist

def serve(rank, things):
    if rank == 0:
        dist.broadcast_object_list(things, src=0)

def wait(rank, things):
    if rank == 0:
        return
    else:
        while True:
            {}(things, src=0)
""",
}


@pytest.mark.parametrize(
    ("code", "silent", "said"),
    [
        ("DEV504", "pass", "print(self.h)"),
        ("DEV548", "run", "other"),
        ("DEV595", "Base", "object"),
        ("OFF112", "lengths, device", "device, lengths"),
        ("OFF114", "", " + rows"),
        ("SHD431", "dist.broadcast_object_list", "print"),
    ],
)
def test_of_maintained_libraries(code: str, silent: str, said: str) -> None:
    quiet = severity(code, READ[code].format(silent))
    assert quiet in (None, Severity.NOTE)
    assert severity(code, READ[code].format(said)) not in (None, Severity.NOTE)
