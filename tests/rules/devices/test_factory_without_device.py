"""DEV521, `factory-without-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import (
    HEAD,
    findings,
    found_in_package,
    severities_in_project,
    severity,
    severity_in_package,
)

CHUNKED = (
    HEAD + "class Head(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.weight = nn.Parameter(torch.ones(n, n))\n\n"
    "    def forward(self, x):\n        if {asked}:\n            return self.by_parts(x)\n"
    "        return x @ self.weight\n\n"
    "    def by_parts(self, x):\n        found = torch.zeros(len(x), 3)\n"
    "        return found + x @ self.weight\n"
)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("len(x) > 3", Severity.WARNING),
        ("self.weight.device.type == 'cpu' and len(x) > 3", Severity.NOTE),
        ("self.weight.device.type != 'cpu'", Severity.WARNING),
        ("not x.is_cuda", Severity.NOTE),
    ],
)
def test_a_method_for_the_cpu(asked: str, expected: Severity) -> None:
    assert severity("DEV521", CHUNKED.format(asked=asked)) is expected


@pytest.mark.parametrize(
    ("head", "net", "expected"),
    [
        ("    @staticmethod\n    def check():\n", "Net()", None),
        ("    def check(self):\n", "self.net", Severity.WARNING),
    ],
)
def test_a_net_that_is_made_right_there(head: str, net: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\n\n"
        "    def forward(self, x):\n        return self.net(x - 1)\n\n"
        f"{head}        net = {net}\n        image = torch.ones(3, 2) * 255\n"
        "        return net(image)\n"
    )
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("default", "call", "expected"),
    [
        ("torch.device('cpu')", "Buffer(3)", Severity.NOTE),
        ("'cpu'", "Buffer(3)", Severity.NOTE),
        ("'cpu'", "Buffer(3, device=chosen)", Severity.WARNING),
        ("None", "Buffer(3)", Severity.WARNING),
    ],
)
def test_a_device_that_is_the_cpu_unless_somebody_gives_one(
    default: str, call: str, expected: Severity
) -> None:
    source = (
        "import torch\n\nclass Buffer:\n"
        f"    def __init__(self, n, device={default}):\n        self.device = device\n"
        "        self.rows = torch.empty(n, 4)\n\n    def add(self, x: torch.Tensor):\n"
        "        return torch.cat([self.rows, x.to(self.device)])\n\n"
        f"def run(chosen):\n    return {call}\n"
    )
    assert severity("DEV521", source) is expected


NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
GREATER = (
    "import torch\n\n\nclass Codec:\n    def __init__(self, cuda=False):\n"
    "        self.cuda = cuda\n\n    def over(self, x):\n        r = torch.rand(x.size())\n"
    "        if self.cuda:\n            r = r.cuda()\n        return x > r\n"
)


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ("codec = Codec()\nx = torch.randn(9)\nprint(codec.over(x))\n", NOTE),
        ("x = torch.randn(9)\nprint(x > torch.rand(9).cuda())\n", ERROR),
    ],
)
def test_what_a_callee_puts_on_a_gpu(tmp_path: Path, used: str, expected: Severity) -> None:
    run = f"import torch\n\nfrom net.codec import Codec\n\n{used}"
    assert severities_in_project(tmp_path, {"codec.py": GREATER, "run.py": run}, "DEV521") == [
        expected
    ]


PLACED = """
import torch
from torch import nn

class Placed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        return self.mix(x) + torch.arange(8)
"""
BETWEEN = "from pkg.own import Placed\n\ndef net():\n    return Placed()\n"


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("files", "is_told"),
    [
        ({}, False),
        ({"train": "from pkg.own import Placed\n\nnet = Placed().cuda()\n"}, True),
        ({"nets": BETWEEN, "train": "import pkg.nets\n\nnet = pkg.nets.net().to('mps')\n"},
         True),
        ({"nets": BETWEEN, "train": "from transformers import Trainer\n"
          "from pkg.nets import net\n\nTrainer(net())\n"}, True),
        ({"train": "from pkg.own import Placed\n\n# net = Placed().cuda()\n"}, False),
        ({f"net{n}": "from pkg.own import Placed\n" for n in range(60)}, False),
        ({"train": "import torch\n\nx = torch.ones(2).cuda()\n"}, False),
        ({"train": "from pkg.own import Placed\nimport torch\n"
          "torch.set_default_device('cuda')\nprint(Placed())\n"}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("code", ["DEV521", "NEW305"])
def test_a_program_that_may_use_a_gpu(
    tmp_path: Path, code: str, files: dict[str, str], is_told: bool
) -> None:
    main = "from pkg.own import Placed\n\nprint(Placed())\n"
    found = severity_in_package(tmp_path, code, PLACED, **{"main": main, **files})
    assert found is (Severity.WARNING if is_told else Severity.NOTE)


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


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.ones(steep.shape[:-1])", Severity.WARNING),
        ("torch.tensor(rows, dtype=steep.dtype)", Severity.WARNING),
        ("torch.ones(3, 1)", None),
        ("torch.ones(steep.shape[:-1]).to(steep)", None),
    ],
)
def test_what_is_made_after_a_variable_has_to_lie_with_it(
    made: str, expected: Severity | None
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Newton(nn.Module):
        def step(self, helper, x, rows):
            steep = self.slopes @ helper.bends(x)
            return steep + torch.diag_embed({made})
    """
    assert severity("DEV521", source) is expected


def test_nothing_says_that_a_plain_function_works_on_gpus() -> None:
    source = """
    import torch

    def step(helper, x):
        steep = helper.slopes(x) @ helper.bends(x)
        return steep + torch.ones(steep.shape[0], dtype=steep.dtype)
    """
    assert severity("DEV521", source) is None


def test_operations_in_place_and_variables_lie_where_their_tensor_does() -> None:
    source = """
    import torch
    from torch import nn
    from torch.autograd import Variable

    class Sampler(nn.Module):
        def drawn(self, middle, spread):
            width = spread.div(2).exp_()
            noise = Variable(torch.randn(width.size()))
            return noise.mul(width).add_(middle)
    """
    assert severity("DEV521", source) is Severity.WARNING


IN_FORWARD = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)

    def forward(self, x):
        return self.mix(x) * torch.ones(3)
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [("package/model.py", Severity.WARNING), ("tutorials/model.py", Severity.NOTE)],
)
def test_a_tutorial_that_says_nothing_of_devices(path: str, expected: Severity) -> None:
    assert severity("DEV521", IN_FORWARD, path) is expected


def test_numpy_of_an_argument_is_a_sign_of_the_cpu() -> None:
    source = IN_FORWARD.replace(
        "        return", "        first = x.detach().numpy()[0]\n        return first *"
    )
    assert severity("DEV521", source) is Severity.NOTE


@pytest.mark.parametrize("asked", ["is_fx_proxy(x)", "torch.onnx.is_in_onnx_export()"])
def test_a_branch_for_tracing(asked: str) -> None:
    source = IN_FORWARD.replace("        return", f"        if {asked}:\n            return")
    assert severity("DEV521", source) is Severity.NOTE


def test_lengths_and_indices_may_be_on_the_cpu() -> None:
    source = """
    import torch
    from torch import nn

    class Read(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.read = nn.LSTM(n, n)

        def forward(self, x, n):
            packed = nn.utils.rnn.pack_padded_sequence(x, torch.full((n,), 3))
            x.index_put_((torch.arange(n),), x[0])
            return self.read(packed)
    """
    assert severity("DEV521", source) is None


def test_a_wrapper_moves_what_it_is_called_with() -> None:
    source = """
    import torch
    from torch import nn

    def trained(model, rank):
        model = nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
        return model(torch.randn(20, 10))
    """
    assert severity("DEV521", source) is None


def test_a_type_says_the_device_too() -> None:
    source = IN_FORWARD.replace("torch.ones(3)", "torch.ones(3).type(x.type())")
    assert severity("DEV521", source) is None


@pytest.mark.parametrize(
    ("output", "expected"),
    [("torch.zeros(len(found), 5)", None), ("found * 2", Severity.WARNING)],
)
def test_a_helper_of_a_model_may_answer_on_the_cpu(output: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Detect:
        def forward(self, found):
            return {output}

    class Net(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.layer = nn.Linear(n, n)
            self.detect = Detect()

        def forward(self, x):
            return self.detect.forward(self.layer(x))

    class Faces:
        def __init__(self, n, device="cuda"):
            self.device = device
            self.net = Net(n).to(device)

        def boxes(self, image, w, h):
            found = self.net(torch.from_numpy(image).to(self.device)).data
            scale = torch.Tensor([w, h, w, h, 1])
            return (found * scale).cpu().numpy()
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("device", "expected"), [("tokens.device", None), ("self.zero.device", Severity.WARNING)]
)
def test_what_stands_after_a_star_belongs_to_the_last_name(
    device: str, expected: Severity | None
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Decorrelation(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("zero", torch.tensor(0.0))

        def forward(self, tokens: torch.Tensor):
            rows, dim, device = *tokens.shape[-2:], {device}
            eye = torch.eye(dim, device=device)
            return tokens.pow(2) * (1.0 - eye)

    def tried(loss_device):
        loss = Decorrelation().to(loss_device)
        return loss(torch.randn(6, 2, 256, 256))
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("moved", "expected"), [('.to("cpu")', None), (".to(device)", Severity.WARNING)]
)
def test_a_part_of_what_was_moved_lies_there_too(moved: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def cached(vae, batch, device: torch.device):
        latents = vae.encode(batch)
        latents = latents{moved}
        for at, item in enumerate(batch):
            video = latents[at : at + 1]
            history = torch.zeros((1, video.shape[1]), dtype=video.dtype)
            item.save(torch.cat([video[:, :, 0], history]))
    """
    assert severity("DEV521", source) is expected


def test_a_number_that_is_moved_by_hand() -> None:
    source = """
    import torch

    class Sampler:
        def g(self, t):
            t = torch.tensor(t)
            return 10**t

        def step(self, x: torch.Tensor, t):
            turned = torch.tensor(self.turned(x.cpu().numpy())).to(x.device)
            score = turned * self.norm(t)
            scale = self.g(t).to(score.device)
            return torch.ones_like(score) * scale + score
    """
    assert severity("DEV521", source) is None


@pytest.mark.parametrize(
    ("made", "expected"),
    [("torch.ones(n, 3)", None), ("torch.ones(n, 3, device=self.device)", Severity.WARNING)],
)
def test_arguments_that_are_handed_on_from_the_cpu(made: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Metric(nn.Module):
        def compute(self, n):
            return self._all({made})

        def _all(self, precisions: torch.Tensor):
            return self._mean(precisions * 2)

        def _mean(self, found: torch.Tensor):
            return torch.zeros(2, 3) + found
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [("package/transforms/pairs.py", Severity.NOTE), ("package/pairs.py", Severity.WARNING)],
)
def test_modules_among_transforms_prepare_data(path: str, expected: Severity) -> None:
    source = """
    import torch
    from torch import nn

    class Centred(nn.Module):
        def forward(self, rows: torch.Tensor):
            return rows + torch.ones(3)
    """
    assert severity("DEV521", source, path) is expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [("rows", Severity.NOTE), ("rows.to(device)", Severity.WARNING)],
)
def test_beside_an_argument_of_a_plain_function(there: str, expected: Severity) -> None:
    source = f"""
    import torch

    def moved(rows: torch.Tensor, device: torch.device):
        return torch.cat([{there}, torch.zeros(3)])

    def blank(rows: torch.Tensor):
        return torch.zeros(3, device=rows.device)
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(("helper", "expected"), [("cuda", None), ("same", Severity.WARNING)])
def test_a_helper_that_moves_where_there_is_a_gpu(helper: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    def cuda(x):
        if torch.cuda.is_available():
            return x.to(torch.device("cuda"))
        return x

    def same(x):
        return x

    class Sampler(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.mean = nn.Linear(n, n)

        def forward(self, x, noise=None):
            mean = self.mean(x)
            noise = {helper}(torch.randn(*mean.shape)) if noise is None else noise
            return mean + noise
    """
    assert severity("DEV521", source) is expected


TABLE = (
    HEAD + "class Positions(nn.Embedding):\n    def fill(self, n, dim):\n"
    "        rows = self.table(n, dim)\n"
    "        self.weight = nn.Parameter(rows.to(self.weight.device))\n\n"
    "    @staticmethod\n    def table(n, dim):\n        half = dim // 2\n"
    "        {number} = 3.0 / (half - 1)\n"
    "        rows = torch.exp(torch.arange(half) * -{number})\n        if dim % 2 == 1:\n"
    "            rows = torch.cat([rows, torch.zeros(n, 1)], dim=1)\n        return rows\n\n"
    "    def forward(self, ids):\n        self.fill(4, self.embedding_dim)\n"
    "        return super().forward(ids)\n"
)


@pytest.mark.parametrize("number", ["step", "rows"])
def test_a_number_whose_name_is_bound_to_a_tensor_later(number: str) -> None:
    assert not findings("DEV521", TABLE.format(number=number))


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


@pytest.mark.parametrize(("size", "expected"), [("0, 0", None), ("4, 4", Severity.WARNING)])
def test_a_kernel_reads_nothing_of_what_is_empty(size: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    import triton

    @triton.jit
    def kernel(x, mask, size):
        pass

    def run(x: torch.Tensor):
        mask = torch.zeros({size})
        kernel[(1,)](x, mask, x.numel())
        return x.cuda()
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("made", "main", "expected"),
    [
        ("torch.zeros(len(y), 3)", "print(one_hot(ask()), torch.ones(1).cuda())", [True]),
        ("torch.zeros(y.shape[0], 3)", "print(one_hot(ask()), torch.ones(1).cuda())", [True]),
        ("torch.zeros(rows, 3)", "print(one_hot(ask()), torch.ones(1).cuda())", [True]),
        ("torch.zeros(8, 3)", "print(one_hot(ask()), torch.ones(1).cuda())", []),
        ("torch.zeros(len(y), 3)", "print(one_hot(ask()))", []),
    ],
)
def test_what_is_made_after_the_shape_of_an_argument(
    tmp_path: Path, made: str, main: str, expected: list[bool]
) -> None:
    """Of a plain function in a file without devices, in a package that may use a GPU or not."""
    source = (
        "import torch\n\n\ndef one_hot(y):\n    shape = list(y.shape)\n    rows, _ = shape\n"
        f"    found = {made}\n    return found.scatter_(1, y.unsqueeze(-1), 1)\n"
    )
    main = f"from pkg.own import one_hot\n{main}\n"
    found = found_in_package(tmp_path, "DEV521", source, main=main)
    assert [each.told for each in found] == expected


@pytest.mark.usefixtures("as_the_rule_says")
def test_a_gpu_named_beside_the_base_class(tmp_path: Path) -> None:
    """The program of the file itself names none."""
    source = (
        "import torch\nfrom pkg.base import Base\n\n\nclass Gate(Base):\n"
        "    def forward(self):\n        norms = torch.norm(self.table.weight, dim=1)\n"
        "        return torch.max(norms, torch.ones(1, 1))\n"
    )
    base = (
        "import torch\nfrom torch import nn\n\n\nclass Base(nn.Module):\n"
        "    def __init__(self, n):\n        super().__init__()\n"
        "        self.table = nn.Embedding(n, n)\n"
        "        self.home = {home}\n"
    )
    for number, (home, expected) in enumerate(
        [("'cuda' if torch.cuda.is_available() else 'cpu'", Severity.WARNING), ("0", Severity.NOTE)]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = base.format(home=home)
        assert severity_in_package(folder, "DEV521", source, base=text) is expected


@pytest.mark.parametrize(
    ("then", "expected"),
    [(".to(x)", Severity.NOTE), (".to(x.dtype)", Severity.NOTE), ("", Severity.WARNING)],
)
def test_a_result_that_is_moved_at_once(then: str, expected: Severity) -> None:
    source = f"""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, bank: torch.Tensor, n):
            x = self.linear(x)
            index = torch.randperm(n)
            return x + (bank * index){then}
    """
    assert severity("DEV521", source) is expected


DETECTOR = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)

class {cls}:
    def fit(self, rows):
        self.net = Net(){then}

    def scores(self, rows):
        return self.net(torch.ones(len(rows), 2))

def main(detector, rows):
    detector.fit(rows)
    {after}
    return detector.scores(rows)
"""


@pytest.mark.parametrize(
    ("cls", "then", "after", "found"),
    [
        ("Detector", "", "pass", False),
        ("Detector", ".to(pick())", "pass", True),
        ("Detector", "", "detector.net.cuda()", True),
        ("Detector(nn.Module)", "", "pass", True),
    ],
)
def test_a_plain_class_that_moves_nothing(cls: str, then: str, after: str, found: bool) -> None:
    source = DETECTOR.format(cls=cls, then=then, after=after)
    assert (severity("DEV521", source) is not None) is found
    assert (severity("NEW305", source) is not None) is found
