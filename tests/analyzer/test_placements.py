"""Where the core believes bytes are, and which node put them there."""

from __future__ import annotations

from pathlib import Path

import pytest

from .snippets import find, module_of, package

HEAD = "import torch\nfrom torch import nn, Tensor\n"


def place(body: str, expression: str) -> str:
    module = module_of(HEAD + body)
    found = module.placement_at(find(module, expression))
    return found.device or (f"={found.same_as}" if found.same_as else "")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.zeros(2)", "cpu"),
        ("torch.zeros(2, device='cuda')", "cuda"),
        ("torch.zeros(2, device='cuda:1')", "cuda"),
        ("torch.zeros(2, device='meta')", "meta"),
        ("torch.zeros(2, device=torch.device('meta'))", "meta"),
        ("torch.zeros(2, device=x.device)", "=x"),
        ("x.cpu()", "cpu"),
        ("x.to('cuda')", "cuda"),
        ("x.to(torch.float16)", ""),
        ("x.to(device=device)", "=device"),
        ("x.cpu().clone()", "cpu"),
        ("x.cpu() + 1", "cpu"),
        ("torch.empty_like(x.cuda())", "cuda"),
        ("x", ""),
    ],
)
def test_tensors(expression: str, expected: str) -> None:
    body = f"def f(x: Tensor, device: torch.device):\n    return {expression}\n"
    assert place(body, expression) == expected


def test_a_module_moves_in_place_with_all_below_it() -> None:
    body = """
def f(model: nn.Module):
    model.cpu()
    use(model.embed)
    model.to("cuda")
    use(model.head)
"""
    assert place(body, "model.embed") == "cpu"
    assert place(body, "model.head") == "cuda"


def test_an_alias_of_a_module_moves_with_it() -> None:
    body = """
def f(model: nn.Module):
    other = model
    other.cpu()
    return model
"""
    assert place(body, "model") == "cpu"


def test_rebinding_a_module_forgets_its_place() -> None:
    body = """
def f(model: nn.Module, make):
    model.cpu()
    model = make()
    return model
"""
    assert place(body, "model") == ""


def test_branches_must_agree() -> None:
    head = "def f(m: nn.Module, c):\n    if c:\n        m.cpu()\n"
    both = head + "    else:\n        m.cpu()\n    use(m)\n"
    one = head + "    use(m)\n"
    assert place(one, "m") == ""
    assert place(both, "m") == "cpu"


def test_a_dropped_move_tells_that_the_subject_is_a_module() -> None:
    assert place("def f(self):\n    self.net.to('cpu')\n    use(self.net)\n", "self.net") == "cpu"


def test_a_dropped_move_of_a_tensor_moves_nothing() -> None:
    assert place("def f(x: Tensor):\n    x.to('cpu')\n    use(x)\n", "x") == ""


def test_a_tested_device_is_believed_inside() -> None:
    body = """
def f(x: Tensor):
    if x.device.type == "meta":
        use(x)
"""
    assert place(body, "x") == "meta"


def test_functions_that_move_their_argument_are_followed() -> None:
    body = """
def park(module: nn.Module):
    module.to("cpu")

def f(model: nn.Module):
    park(model)
    return model
"""
    assert place(body, "model") == "cpu"


def test_the_mover_is_remembered() -> None:
    module = module_of(HEAD + "def f(m: nn.Module):\n    m.cpu()\n    use(m)\n")
    by = module.placement_at(find(module, "m")).by
    assert by is not None
    assert module.text(by) == "m.cpu()"


def test_movers_of_other_files_are_followed(tmp_path: Path) -> None:
    module = package(
        tmp_path,
        {
            "pkg/use.py": """
                from torch import nn
                from .helpers import offload_all as oa
                def f(model: nn.Module):
                    oa(model)
                    return model
                """,
            "pkg/__init__.py": "",
            "pkg/helpers.py": "def offload_all(m):\n    m.to('cpu')\n",
        },
    )
    assert module.placement_at(find(module, "model")).device == "cpu"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("deallocate_module(model)", "cpu"),
        ("accelerate.cpu_offload(model)", "offloaded"),
        ("torch_tensorrt.MutableTorchTensorRTModule(model)", "offloaded"),
        ("anything(model)", ""),
    ],
)
def test_known_library_functions(call: str, expected: str) -> None:
    body = (
        f"import accelerate, torch_tensorrt\ndef f(model: nn.Module):\n    {call}\n    use(model)\n"
    )
    assert place(body, "model") == expected


def test_an_exported_program_shares_the_parameters() -> None:
    body = """
def f(model: nn.Module, ids):
    ep = torch.export.export(model, ids)
    gm = ep.module()
    deallocate_module(gm)
    return model
"""
    assert place(body, "model") == "cpu"
