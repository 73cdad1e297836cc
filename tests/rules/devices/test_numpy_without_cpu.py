"""DEV503, `numpy-without-cpu`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import findings, severity


@pytest.mark.parametrize(("library", "expected"), [("paddle", None), ("torch", Severity.ERROR)])
def test_tensors_of_another_library(library: str, expected: Severity | None) -> None:
    source = f"""
    import {library}

    def counted(inputs):
        return inputs["rows"].cuda(0).numpy().sum()
    """
    assert severity("DEV503", source) is expected


@pytest.mark.parametrize(
    ("name", "expected"), [("tensorflow as tf", None), ("tables as tf", Severity.NOTE)]
)
def test_a_library_that_the_project_hands_on(name: str, expected: Severity | None) -> None:
    source = f"""
    from net.lazy import {name}

    def listed(net, x):
        return tf.shown(net(x).detach().numpy())
    """
    assert severity("DEV503", source) is expected


OTHER = (
    "import torch\nimport warp\n\n\ndef as_array(x: torch.Tensor | warp.array, device):\n"
    "    if isinstance(x, {cls}):\n        return x.numpy()\n    return x.to(device)\n"
)


@pytest.mark.parametrize(
    ("cls", "expected"), [("warp.array", None), ("torch.Tensor", Severity.NOTE)]
)
def test_an_array_of_another_library(cls: str, expected: Severity | None) -> None:
    assert severity("DEV503", OTHER.format(cls=cls)) is expected


def test_the_device_is_told() -> None:
    (found,) = findings("DEV503", "import torch\nx = torch.ones(2, device='xpu').numpy()\n")
    said = "`torch.ones(2, device='xpu')` is on xpu, and numpy reads the CPU only"
    assert found.message == said


@pytest.mark.parametrize(
    ("made", "read"),
    [
        ("{k: v.cuda() for k, v in batch.items()}", "out.logits.argmax(-1).numpy()"),
        ("{k: v.to(device) for k, v in batch.items()}", "np.sqrt(out.logits.softmax(-1))"),
        ("[v.to(device) for v in batch]", "f1_score(labels, out.logits.detach())"),
    ],
)
def test_what_a_model_computes_of_moved_members(made: str, read: str) -> None:
    source = f"""
    import numpy as np
    from sklearn.metrics import f1_score

    def predict(model, batch, device, labels):
        batch = {made}
        out = model({"**" if made.startswith("{") else "*"}batch)
        return {read}
    """
    assert severity("DEV503", source) is Severity.WARNING
    assert severity("DEV503", source.replace(made, "batch")) is not Severity.WARNING


@pytest.mark.parametrize("read", ["np.mean(out)", "np.sqrt(out.shape[0])", "np.sqrt(out.cpu())"])
def test_what_numpy_asks_the_tensor_for_or_finds_on_the_cpu(read: str) -> None:
    source = f"""
    import numpy as np

    def predict(model, rows, device):
        out = model(rows.to(device)).float()
        return {read}
    """
    assert severity("DEV503", source) is None


KNOWN = (
    "import torch\n\n\ndef most(rows{given}):\n    device = {made}\n"
    "    best = torch.zeros(len(rows), device='cuda')\n    if device {test}:\n"
    "        return best.numpy()\n    return best\n"
)


@pytest.mark.parametrize(
    ("given", "made", "test", "expected"),
    [
        ("", "'cuda'", "== 'cpu'", None),
        ("", "'cuda'", "!= 'cuda'", None),
        ("", "'cuda'", "== 'cuda'", Severity.ERROR),
        (", name", "name", "== 'cpu'", Severity.ERROR),
        (", name='cuda'", "name", "== 'cpu'", Severity.ERROR),
    ],
)
def test_nothing_comes_to_the_branch_of_another_device(
    given: str, made: str, test: str, expected: Severity | None
) -> None:
    assert severity("DEV503", KNOWN.format(given=given, made=made, test=test)) is expected


@pytest.mark.parametrize(("end", "count"), [("return rows", 0), ("rows.sort()", 1)])
def test_what_stands_behind_a_return(end: str, count: int) -> None:
    source = f"""
    import torch

    def picked(net, rows, device):
        net.to(device)
        {end}
        index = net(rows)
        return index.detach().numpy()
    """
    assert len(findings("DEV503", source)) == count


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ("rows = rows.to(device)", None),
        ("rows, labels = rows.to(device), labels.to(device)", Severity.WARNING),
        ("pass", Severity.NOTE),
    ],
)
def test_labels_that_are_not_moved_with_the_rows(moved: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def read(loader, device):
        for batch in loader:
            rows, labels = batch
            {moved}
            yield rows, labels.detach().numpy()
    """
    assert severity("DEV503", source) is expected


@pytest.mark.parametrize(
    ("step", "expected"), [("x.requires_grad_(True)", None), ("x = net(x)", Severity.NOTE)]
)
def test_a_leaf_was_computed_by_no_model(step: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def moved(net, rows, device):
        x, y = map(torch.from_numpy, rows)
        {step}
        net.to(device)(x).sum().backward()
        return x.detach().numpy()
    """
    assert severity("DEV503", source) is expected
