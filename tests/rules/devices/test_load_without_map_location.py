"""DEV506, `load-without-map-location`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.devices.reasons import runs_without_a_gpu
from tests.rules.judged import findings, severity

FETCHED = (
    "import glob\nimport os\n\nimport torch\nfrom hub import file_download, folder_download\n\n\n"
    "def where(name, folder):\n    return file_download(repo_id={repo}, filename=name)\n\n\n"
    "def restore(model, small, folder, repo):\n"
    "    owned = 'someone/' + small\n    {get}\n"
    "        model.load_state_dict(torch.load(part))\n"
)


@pytest.mark.parametrize(
    ("repo", "get", "expected"),
    [
        ("'someone/small'", "for part in [where('net.pt', folder)]:", Severity.NOTE),
        ("folder", "for part in [where(small, folder)]:", Severity.WARNING),
        ("folder", "for part in glob.glob(folder_download(owned)):", Severity.NOTE),
        ("folder", "for part in glob.glob(folder_download(repo)):", Severity.WARNING),
        ("folder", "for part in glob.glob(folder):", Severity.WARNING),
    ],
)
def test_a_file_that_the_project_publishes(repo: str, get: str, expected: Severity) -> None:
    source = runs_without_a_gpu(FETCHED.format(repo=repo, get=get))
    assert severity("DEV506", source) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("folder + '/best.pt'", Severity.NOTE), ("folder + '/first.pt'", Severity.WARNING)],
)
def test_what_the_function_saved_above(path: str, expected: Severity) -> None:
    source = (
        "import torch\n\n\ndef fit(self, model, folder, device):\n    for turn in range(3):\n"
        "        if self.step(model) > 0.5:\n"
        "            torch.save(model.state_dict(), f'{folder}/best.pt')\n"
        f"    model.to(device).load_state_dict(torch.load({path}))\n"
    )
    assert severity("DEV506", source) is expected


FETCHING = (
    "import os\n\nimport torch\nfrom hub import download\n\n\ndef where(name, root):\n"
    "    path = os.path.join(root, name)\n    if not os.path.exists(path):\n        {get}\n"
    "    return path\n\n\n"
    "def restore(model, root, name):\n    model.load_state_dict(torch.load(where({name}, root)))\n"
)


@pytest.mark.parametrize(
    ("get", "name", "expected"),
    [
        ("download(name, path)", "'small'", Severity.NOTE),
        ("download(name, path)", "name", Severity.WARNING),
        ("raise ValueError(name)", "'small'", Severity.WARNING),
    ],
)
def test_a_written_name_that_is_fetched(get: str, name: str, expected: Severity) -> None:
    source = runs_without_a_gpu(FETCHING.format(get=get, name=name))
    assert severity("DEV506", source) is expected


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
        ("pass", "pass", "pass", "not exist here"),
        ("pass", "fast = torch.cuda.is_available()", "pass", "a GPU, although line 12"),
        ("pass", "assert torch.cuda.is_available()", "pass", "not exist here"),
        ("pass", "if not torch.cuda.is_available(): raise ValueError", "pass", "not exist here"),
        ("pass", "pass", "if torch.cuda.is_available(): pass", "a GPU, although line 16"),
        ("self.where = device; net.to(self.where)", "pass", "pass", "a GPU, although line 9"),
        ("self.where = 'cuda'", "pass", "self.net.to(self.where)", "not exist here"),
        (CURRENT, "pass", "pass", "not exist here"),
        ("pass", "rows = torch.ones(3); rows.to(rows.dtype)", "pass", "not exist here"),
        ("pass", "where = torch.device(self.options['where'])", "pass", "although line 12"),
        ("self.launcher = Accelerator()", "pass", "pass", "run this code (see line 9)"),
        ("pass", "groups.get_model_rank()", "pass", "run this code (see line 12)"),
        ("pass", "nn.parallel.DistributedDataParallel(self.net, device_ids=[turn])", "pass",
         "run this code (see line 12)"),
        ("pass", "named = lambda rank: rank", "pass", "run this code (see line 12)"),
        ("pass", "if turn: torch.load(path, map_location='cpu')", "pass", "loads the same file"),
        ("pass", "if turn: torch.load(turn, map_location='cpu')", "pass", "not exist here"),
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
    expected = Severity.NOTE if says == "not exist here" else Severity.WARNING
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


RESUMED = """
import torch
import torch.distributed as dist

def f(net, folder, device):
    {before}
    rank = dist.get_rank()
    {step}
    net.load_state_dict(torch.load(path))
"""
ALL_USE_ONE = "all of them load onto that one GPU"


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


def test_the_same_run_saved_the_file() -> None:
    source = """
    import torch

    def fit(trainer, model, checkpoint, device):
        trainer.fit(model)
        model.to(device).load_state_dict(torch.load(checkpoint.{path}))
    """
    assert severity("DEV506", source.format(path="best_model_path")) is Severity.NOTE
    assert severity("DEV506", source.format(path="path")) is Severity.WARNING


@pytest.mark.parametrize(
    ("use", "told"), [("model.load_state_dict(found)", True), ("model.rows(found)", False)]
)
def test_without_a_sign_weights_are_told_of_by_default(use: str, told: bool) -> None:
    source = f"""
    import torch

    def restored(model, path):
        found = torch.load(path)
        {use}
        return model
    """
    assert [each.told for each in findings("DEV506", source)] == [told]


@pytest.mark.parametrize(
    ("path", "location", "expected"),
    [
        ("path", "torch.device('cpu')", Severity.NOTE),
        ("path", "'cpu'", Severity.NOTE),
        ("path", "self.device", Severity.WARNING),
        ("other", "'cpu'", Severity.WARNING),
    ],
)
def test_the_other_branch_is_for_the_cpu(path: str, location: str, expected: Severity) -> None:
    source = f"""
    import torch

    class Backend:
        def load(self, path, other):
            if self.use_gpu:
                self.model = self.model.to(self.device)
            if self.use_gpu:
                if self.many:
                    state = torch.load(path)
                else:
                    state = torch.load(path, map_location=torch.device("cuda"))
            else:
                state = torch.load({path}, map_location={location})
            self.model.load_state_dict(state)
    """
    assert severity("DEV506", source) is expected


@pytest.mark.parametrize(
    ("device", "other", "expected"),
    [
        ("'cpu'", "gpu", Severity.NOTE),
        ("'cuda'", "gpu", Severity.NOTE),
        ("'cpu'", "cpu", Severity.WARNING),
        ("self.usual", "gpu", Severity.WARNING),
    ],
)
def test_each_kind_of_device_has_its_file(device: str, other: str, expected: Severity) -> None:
    source = f"""
    import torch

    class Detector:
        def __init__(self, folder, device=None):
            self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
            if self.device == {device}:
                self.net = torch.jit.load(folder / "net_cpu.ts").to(self.device)
            else:
                self.net = torch.jit.load(folder / "net_{other}.ts").to(self.device, torch.half)
    """
    found = findings("DEV506", source)
    assert {each.severity for each in found} == {expected}


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("print(layers_per_rank)", Severity.WARNING),
        ("first += layers_per_rank[part]", Severity.NOTE),
        ("pass", Severity.NOTE),
    ],
)
def test_a_parameter_that_is_no_rank(use: str, expected: Severity) -> None:
    source = f"""
    import torch

    def merged(folder, parts, first, layers_per_rank, model):
        for part in range(parts):
            {use}
            model.load_state_dict(torch.load(f"{{folder}}/{{part}}.pt"))
    """
    assert severity("DEV506", source) is expected
