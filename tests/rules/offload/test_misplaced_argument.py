"""OFF112, `misplaced-argument`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import findings, found_in_package, severities_in_project, severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("call", "expected"),
    [("gathered(self, outputs, output_device)", None), ("gathered(outputs, output_device)", ERROR)],
)
def test_a_function_that_is_given_self(call: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\ndef gathered(net, outputs, output_device):\n    return outputs\n\n\n"
        "class Net(torch.nn.DataParallel):\n    def gather(self, outputs, output_device):\n"
        f"        return {call}\n"
    )
    assert severity("OFF112", source) is expected


def test_a_name_that_functions_import_from_several_files(tmp_path: Path) -> None:
    """The first import is made twice, and a call between the two is of the first as well."""
    run = "    from pkg.{0} import Client\n    return Client(args, device, model)\n\n\n"
    source = "".join(
        f"def {name}(args, device, model):\n" + run.format(file)
        for name, file in (("near", "silo"), ("far", "silo"), ("served", "serving"))
    )
    takes = "class Client:\n    def __init__(self, args, {}): ...\n"
    found = found_in_package(
        tmp_path,
        "OFF112",
        source,
        silo=takes.format("device, model"),
        serving=takes.format("name, device=None, model=None"),
    )
    assert [each.site.line for each in found] == [13]


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("call", "expected"),
    [("create_both", NOTE), ("create_both('small', 'cpu')", ERROR)],
)
def test_a_function_that_is_exported_and_never_called(
    tmp_path: Path, call: str, expected: Severity
) -> None:
    factory = (
        "def create(name, precision='fp32', device='cpu'):\n    return precision, device\n\n\n"
        "def create_both(name, device='cpu'):\n    return create(name, device)\n"
    )
    files = {
        "__init__.py": "from net.factory import create_both\n",
        "factory.py": factory,
        "run.py": f"from net.factory import create_both\n\nprint({call})\n",
    }
    assert severities_in_project(tmp_path, files, "OFF112") == [expected]


def test_a_misspelled_keyword_that_the_rest_takes() -> None:
    source = (
        "def load(path, offload_param_device=None, **rest):\n    return path\n\n\n"
        "def start(path, offload_param_device):\n"
        "    return load(path, offload_params_device=offload_param_device)\n"
    )
    (found,) = findings("OFF112", source)
    assert "has no parameter of that name, but `offload_param_device`" in found.message
