"""A device that is given in another form than the code takes: DEV501, DEV513, DEV573."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import lines, severities_in_project

ENGINE = """\
import torch


class Engine:
    def __init__(self, model, device):
        self.model, self.device = model, device

    def run(self, x):
        {asked}
        return self.model(x)
"""
TEXT = "from net.engine import Engine\n\n\ndef main(model):\n    return Engine(model, 'cuda')\n"
DEVICE = (
    "import torch\n\nfrom net.engine import Engine\n\n\ndef main(model):\n"
    "    return Engine(model, device=torch.device('cuda'))\n"
)
PARSED = (
    "import argparse\n\nfrom net.engine import Engine\n\n\ndef main(model):\n"
    "    parser = argparse.ArgumentParser()\n    parser.add_argument('--device'{how})\n"
    "    return Engine(model, parser.parse_args().device)\n"
)


@pytest.mark.parametrize(
    ("code", "asked", "caller", "found"),
    [
        ("DEV501", "assert self.device == 'cuda'", DEVICE, [Severity.NOTE]),
        ("DEV501", "assert self.device == 'cuda'", TEXT, []),
        ("DEV513", "assert self.device.type", TEXT, [Severity.NOTE]),
        ("DEV513", "assert self.device.type", DEVICE, []),
        ("DEV513", "assert hasattr(self.device, 'type') and self.device.type", TEXT, []),
        ("DEV573", "assert 'cuda' in self.device", DEVICE, [Severity.NOTE]),
        ("DEV573", "assert self.device.startswith('cuda')", DEVICE, [Severity.NOTE]),
        ("DEV573", "assert self.device.startswith('cuda')", TEXT, []),
        ("DEV513", "assert self.device.type", PARSED.format(how=""), [Severity.NOTE]),
        ("DEV513", "assert self.device.type", PARSED.format(how=", type=torch.device"), []),
        ("DEV513", "assert self.device.type", PARSED.format(how=", type=pick"), []),
    ],
)
def test_by_the_call_of_another_file(
    tmp_path: Path, code: str, asked: str, caller: str, found: list[Severity]
) -> None:
    files = {"engine.py": ENGINE.format(asked=asked), "main.py": caller}
    assert severities_in_project(tmp_path, files, code) == found


@pytest.mark.parametrize(
    ("made", "flagged"),
    [
        ("int(os.environ['LOCAL_RANK'])", True),
        ("rank if torch.cuda.is_available() else 'cpu'", True),
        ("f'cuda:{rank}'", True),
        ("torch.device(rank)", False),
        ("place(rank)", False),
    ],
)
def test_a_number_or_a_text_has_no_type(made: str, flagged: bool) -> None:
    source = (
        "import os\n\nimport torch\n\n\ndef started(model, rank, place):\n"
        f"    where = {made}\n    return model.half() if where.type == 'cuda' else model\n"
    )
    assert lines("DEV513", source) == ([(8, Severity.NOTE)] if flagged else [])


METRICS = "def best(scores, k):\n    values, index = scores.topk(k)\n    return index{read}\n"
RUN = (
    "import torch\n\nfrom net.metrics import best\n\n\ndef main(model, rows, device):\n"
    "    model.to(device)\n    return best(model(rows.to(device)){brought}, 5)\n"
)


@pytest.mark.parametrize(
    ("read", "brought", "found"),
    [
        (".numpy()", "", [Severity.NOTE]),
        (".cpu().numpy()", "", []),
        (".numpy()", ".cpu()", []),
    ],
)
def test_numpy_of_what_another_file_passes(
    tmp_path: Path, read: str, brought: str, found: list[Severity]
) -> None:
    files = {"metrics.py": METRICS.format(read=read), "run.py": RUN.format(brought=brought)}
    assert severities_in_project(tmp_path, files, "DEV503") == found


@pytest.mark.parametrize(
    ("body", "flagged"),
    [
        ("return model.generate(x)[0].numpy()", True),
        ("return model.generate(x)[0].cpu().numpy()", False),
        ("return other.generate(x)[0].numpy()", False),
        ("model.cpu(); return model.generate(raw)[0].numpy()", False),
        ("found = {'all': []}; found['all'].append(model(x)); "
         "return torch.cat(found['all']).numpy()", True),
        ("return x.cpu().numpy(), raw.a.cpu().numpy(), raw.b.cpu().numpy(), raw.c.numpy()", True),
        ("return x.cpu().numpy(), raw.a.cpu().numpy(), raw.c.numpy()", False),
    ],
)  # fmt: skip
def test_numpy_of_what_the_function_shows(body: str, flagged: bool) -> None:
    source = (
        "import torch\n\n\ndef run(model, other, raw, device):\n    model.to(device)\n"
        f"    x = raw.x.to(device)\n    {body}\n"
    )
    assert [line for line, _ in lines("DEV503", source)] == ([7] if flagged else [])
