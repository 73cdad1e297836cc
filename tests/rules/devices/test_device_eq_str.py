"""DEV501, `device-eq-str`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severities_in_project, severity

ASKED = (
    HEAD + "class Task:\n    def __init__(self, device: torch.device, keep: bool = True):\n"
    "        if {asked}:\n            print('kept on the CPU')\n            keep = False\n"
    "        self.keep, self.device = keep, device\n\n"
    "    def close(self):\n        if {test}self.device != 'cpu':\n            {what}\n"
)


@pytest.mark.parametrize(
    ("asked", "test", "what", "expected"),
    [
        ("not keep", "", "torch.cuda.empty_cache()", Severity.NOTE),
        ("not keep", "", "torch.cuda.synchronize()", Severity.ERROR),
        ("not keep", "self.keep and ", "torch.cuda.synchronize()", Severity.ERROR),
        ("device.type != 'cuda'", "self.keep and ", "torch.cuda.synchronize()", Severity.NOTE),
    ],
)
def test_a_device_compared_with_a_text(
    asked: str, test: str, what: str, expected: Severity
) -> None:
    assert severity("DEV501", ASKED.format(asked=asked, test=test, what=what)) is expected


NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
SHOWN = "import torch\n\n\ndef shown(x: torch.Tensor):\n    return x.shape\n\n\n"
TRIED = 'if __name__ == "__main__":\n    x = torch.ones(2)\n    print(x.device == "cpu")\n'
LOADED = (
    "import torch\n\n\ndef load(name, precision=None):\n    device = torch.device(name)\n"
    '    if precision is None:\n        precision = "full" if device == "cpu" else "half"\n'
    "    return torch.nn.Linear(2, 2), precision\n"
)


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("tried", "other", "expected"),
    [
        (TRIED, "from net.shapes import shown\n", NOTE),
        (TRIED, "", ERROR),
        (TRIED + "    main()\n", "from net.shapes import shown\n", ERROR),
    ],
)
def test_what_a_module_tries_out(
    tmp_path: Path, tried: str, other: str, expected: Severity
) -> None:
    files = {"shapes.py": SHOWN + tried, "train.py": other}
    assert severities_in_project(tmp_path, files, "DEV501") == [expected]


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(("call", "expected"), [("load(name, kind)", NOTE), ("load(name)", ERROR)])
def test_what_every_caller_gives(tmp_path: Path, call: str, expected: Severity) -> None:
    run = f'from net.loads import load\n\nif __name__ == "__main__":\n    print({call})\n'
    files = {"loads.py": LOADED, "run.py": run}
    assert severities_in_project(tmp_path, files, "DEV501") == [expected]


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


@pytest.mark.parametrize(
    ("test", "moved", "expected"),
    [
        ("isinstance(x, torch.Tensor) and x.device != 'cuda'", "x.cuda()", NOTE),
        ("x is not None and x.device != 'cuda'", "x.to('cuda')", NOTE),
        ("x is not None and x.device != 'cpu'", "x.cuda()", ERROR),
        ("x is None or x.device != 'cuda'", "x.cuda()", ERROR),
        ("x is not None and x.device != 'cuda'", "x.to('cuda') + 1", ERROR),
    ],
)
def test_a_move_to_the_device_that_is_named(test: str, moved: str, expected: Severity) -> None:
    alone = f"import torch\n\n\ndef placed(x: torch.Tensor):\n    return {moved} if {test} else x\n"
    assert severity("DEV501", alone) is expected
    body = f"    if {test}:\n        x = {moved}\n    return x\n"
    assert severity("DEV501", f"import torch\n\n\ndef f(x: torch.Tensor):\n{body}") is expected


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


OF_META = (
    "import torch\n\n\ndef convert(model: torch.nn.Linear):\n"
    "    if model.weight.device {sign} 'meta':\n        {step}\n"
)


@pytest.mark.parametrize(
    ("sign", "step", "expected"),
    [
        ("!=", "model.weight.data = torch.nn.functional.normalize(model.weight)", Severity.NOTE),
        ("!=", "model.scale = model.weight.max().item()", Severity.ERROR),
        ("==", "model.weight.data = torch.zeros(4, 4)", Severity.ERROR),
    ],
)
def test_what_is_computed_on_meta_too(sign: str, step: str, expected: Severity) -> None:
    assert severity("DEV501", OF_META.format(sign=sign, step=step)) is expected


OPENED = (
    "import torch\n\n\nclass Run:\n    def __init__(self, net):\n        self.net = net\n"
    "        self.at = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n\n"
    "    def load(self, path):\n        if self.at == 'cuda':\n            state = {load}(path)\n"
    "        else:\n            state = torch.load(path, map_location='cpu')\n        {then}\n"
)


@pytest.mark.parametrize(
    ("load", "then", "expected"),
    [
        ("torch.load", "self.net.load_state_dict(state)", Severity.NOTE),
        ("torch.load", "return state", Severity.ERROR),
        ("self.read", "self.net.load_state_dict(state)", Severity.ERROR),
    ],
)
def test_a_choice_of_where_a_state_is_loaded(load: str, then: str, expected: Severity) -> None:
    assert severity("DEV501", OPENED.format(load=load, then=then)) is expected


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
    ("said", "owner", "expected"),
    [
        ("str | torch.device", "Coder", Severity.NOTE),
        ("str", "Coder", None),
        ("str | torch.device", "Other", None),
    ],
)
def test_a_parameter_without_a_type(said: str, owner: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from others import Other

    class Coder(torch.nn.Module):
        @classmethod
        def load(cls, path, device):
            model = cls(path)
            if device == "cuda":
                model.cuda()
            return model

    def loaded(path, device: "{said}" = "cpu"):
        return {owner}.load(path, device)
    """
    assert severity("DEV501", source) is expected


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("'cuda'", Severity.NOTE),
        ("torch.device('cuda')", Severity.ERROR),
        ("place", Severity.ERROR),
    ],
)
def test_callers_that_all_pass_a_text(tmp_path: Path, device: str, expected: Severity) -> None:
    runner = (
        "import torch\n\n\nclass Runner:\n    def __init__(self, path, device: torch.device):\n"
        "        self.provider = 'gpu' if device == 'cuda' else 'cpu'\n        self.path = path\n"
    )
    run = (
        "import sys\nimport torch\nfrom net.runner import Runner\n\nplace = sys.argv[1]\n"
        f"Runner('a', {device})\nRunner('b', device={device})\n"
    )
    files = {"runner.py": runner, "run.py": run}
    assert severities_in_project(tmp_path, files, "DEV501") == [expected]
