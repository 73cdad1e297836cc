"""Where tensors are inferred to lie inside of a function, and what meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.judging.module import PythonModule

from ..snippets import find, module_of, package

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn, Tensor\n"


def places(module: PythonModule, expression: str) -> str:
    """The places of the last expression with that source, in words."""
    node = find(module, expression)
    function = module.tree.outermost_function_of(node)
    assert function is not None
    held = module.places(function).seen[node]
    rank = " scalar" if held.rank == 0 else ""
    return " | ".join(each.text for each in held.in_order) + rank


ELSEWHERE = "from einops import pack, rearrange, reduce, repeat, unpack\nimport einops\n"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("rearrange(x, 'b n -> n b')", "of(x)"),
        ("repeat(torch.arange(n), 'n -> b n', b=2)", "default"),
        ("reduce(x, 'b n -> b', 'mean')", "of(x)"),
        ("reduce(torch.zeros(n), 'n ->', 'sum')", "default scalar"),
        ("einops.einsum(x, y, 'i j, j k -> i k')", "of(x)"),
        ("pack([x], '* d')[0]", "of(x)"),
        ("unpack(x, shapes, '* d')[0]", "of(x)"),
        ("torchvision.ops.box_area(x)", "of(x)"),
        ("torchvision.ops.box_iou(x, y)", "of(x)"),
        ("rearrange(rows, 'b n -> n b')", ""),
    ],
)
def test_what_other_libraries_make_of_tensors(expression: str, expected: str) -> None:
    head = f"{ELSEWHERE}import torchvision\ndef f(x: Tensor, y: Tensor, n: int, rows, shapes):"
    assert places(inside(f"return {expression}", head=head), expression) == expected


def inside(
    *lines: str, head: str = "def f(x: Tensor, y: Tensor, n: int, device: torch.device):"
) -> PythonModule:
    return module_of(HEAD + "\n".join([head, *(f"    {line}" for line in lines)]) + "\n")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x", "of(x)"),
        ("torch.max(x, y)", "of(x)"),
        ("torch.as_tensor([n, n])", "default"),
        ("torch.zeros(2, 3)", "default"),
        ("torch.zeros(*x.shape)", "default"),
        ("torch.zeros(2, device=device)", "device(device)"),
        ("torch.zeros(2, device=x.device)", "of(x)"),
        ("torch.zeros(2, device='cuda:1')", "literal(cuda)"),
        ("torch.cuda.FloatTensor(2, 3).fill_(1)", "literal(cuda)"),
        ("torch.zeros(2, device='meta')", "meta"),
        ("torch.zeros(2, device=torch.device('cpu'))", "literal(cpu)"),
        ("torch.zeros(2, device=torch.device(type='cuda', index=n))", "literal(cuda)"),
        ("torch.zeros(2, device=torch.device(**n))", ""),
        ("torch.zeros_like(x)", "of(x)"),
        ("torch.zeros_like(x, device=device)", "device(device)"),
        ("x.new_zeros(3)", "of(x)"),
        ("torch.autograd.grad(x.sum(), y)[0]", "of(y)"),
        ("x.to(y)", "of(y)"),
        ("x.to(device)", "device(device)"),
        ("x.to(device=y.device, dtype=y.dtype)", "of(y)"),
        ("x.to(torch.float16)", "of(x)"),
        ("x.to(y.dtype)", "of(x)"),
        ("x.cpu()", "literal(cpu)"),
        ("x.cuda()", "literal(cuda)"),
        ("x.npu()", "literal(npu)"),
        ("x.float().unsqueeze(0).expand(2, 3)", "of(x)"),
        ("torch.tensor(3.0)", "default scalar"),
        ("torch.zeros(3).sum()", "default scalar"),
        ("x.mean()", "of(x) scalar"),
        ("torch.tensor(3.0) * x", "of(x)"),
        ("torch.cat([x, torch.ones(2)])", "of(x)"),
        ("x.max(dim=-1)[0]", "of(x)"),
        ("torch.from_numpy(n)", "host"),
        ("torch.zeros(2, **n)", ""),
        ("(x if n else x)", "of(x)"),
        ("(x if n else torch.ones(2))", "default if not n | of(x) if n"),
        ("[x, x][0]", "of(x)"),
        ("F.softmax(x, dim=-1)", "of(x)"),
    ],
)
def test_expressions(expression: str, expected: str) -> None:
    bare = expression.removeprefix("(").removesuffix(")") if expression[0] == "(" else expression
    assert places(inside(f"return {expression}"), bare) == expected


def test_branches_remember_their_condition() -> None:
    module = inside("if n:", "    x = x.to(device)", "return x")
    assert places(module, "x") == "device(device) if n | of(x) if not n"


def test_an_early_return_leaves_one_path() -> None:
    module = inside("if n:", "    return y", "x = x.to(device)", "return x")
    assert places(module, "x") == "device(device)"


def test_a_test_of_devices_is_believed() -> None:
    module = inside("if x.device != y.device:", "    x = x.to(y.device)", "return x")
    assert places(module, "x") == "of(y)"


def test_none_on_one_path_says_nothing_of_the_place() -> None:
    module = inside("z = None", "if n:", "    z = x", "return z")
    assert places(module, "z") == "of(x)"


def test_a_tuple_on_one_path_and_a_tensor_on_the_other_keep_their_members_apart() -> None:
    module = module_of(
        "import torch\n\ndef some(x: torch.Tensor, n: int):\n    if n == 0:\n        return x\n"
        "    return x[:n], torch.arange(n)\n\ndef f(y: torch.Tensor, n: int):\n"
        "    rows, at = some(y, n)\n    return torch.stack([rows])\n"
    )
    assert places(module, "torch.stack([rows])") == "of(y)"


def test_loops_and_lists() -> None:
    module = inside("out = []", "for _ in range(n):", "    out.append(x.to(device))",
                    "return torch.stack(out)")  # fmt: skip
    assert places(module, "torch.stack(out)") == "device(device)"


def test_what_lies_on_the_cpu_in_two_ways_is_one_member_of_a_list() -> None:
    module = module_of(
        HEAD + "class Steps:\n"
        "    def __init__(self, n):\n"
        "        self.rows = torch.from_numpy(n)\n"
        "    def keep(self):\n"
        "        self.rows = self.rows.to('cpu')\n"
        "    def f(self, n):\n"
        "        out = []\n"
        "        for at in n:\n"
        "            out.append(self.rows[at])\n"
        "        return torch.stack(out)\n"
    )
    assert places(module, "torch.stack(out)") == "literal(cpu)"


def test_two_unknown_things_of_one_place_make_a_third() -> None:
    module = module_of(
        HEAD + "def both(sigma):\n    alpha = sigma + 1\n    return alpha, sigma * alpha\n\n\n"
        "def f(x: Tensor):\n    alpha, sigma = both(x.cpu())\n    return sigma\n"
    )
    assert places(module, "sigma") == "literal(cpu)"


def test_of_two_assignments_in_one_block_the_last_one_lasts() -> None:
    module = module_of(
        HEAD + "class Steps:\n"
        "    def __init__(self, n):\n"
        "        self.rows = torch.zeros(n)\n"
        "        self.rows = self.rows.to('cpu')\n"
        "        if n:\n"
        "            self.rows = self.rows.to('cuda')\n"
        "    def f(self):\n        return self.rows\n"
    )
    assert places(module, "self.rows") == "literal(cpu) | literal(cuda)"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("both = {'a': torch.ones(2), 'b': x}", "z = both['a']"), "default"),
        (("both = dict(a=torch.ones(2), b=x)", "z = both['b']"), "of(x)"),
        (("both = {'a': x}", "both['c'] = torch.ones(2)", "z = both.get('c')"), "default"),
        (("both = {'a': torch.ones(2)}", "both['a'] = y", "z = both['a']"), "of(y)"),
        (("both = {'a': torch.ones(2)}", "moved(both)", "z = both['a']"), ""),
        (("both = {'a': torch.ones(2)}", "both.update(n)", "z = both['a']"), ""),
        (
            ("both = {'a': torch.ones(2)}", "for k in both:", "    both[k] = both[k].to(x)",
             "z = both['a']"),
            "default | of(x) | unknown",
        ),
    ],
)  # fmt: skip
def test_members_of_a_mapping_are_told_apart_by_their_keys(
    lines: tuple[str, ...], expected: str
) -> None:
    assert places(inside(*lines, "return z"), "z") == expected


@pytest.mark.parametrize(
    ("passed", "expected"),
    [("x", "of(x)"), ("n", "local(z)")],
)
def test_what_is_passed_answers_what_is_asked_of_its_type(passed: str, expected: str) -> None:
    made = (
        "def made(rows):\n    if isinstance(rows, int):\n        rows = torch.arange(rows)\n"
        "    return rows * 2\n\n\ndef f(x: Tensor, n: int):\n"
        f"    z = made({passed})\n    return z\n"
    )
    assert places(module_of(HEAD + made), "z").partition(" | ")[0] == expected


def test_an_argument_that_is_asked_for_two_types_may_be_a_tensor_whatever_is_said_of_it() -> None:
    module = module_of(
        HEAD + "def f(rows: np.ndarray | int):\n"
        "    if isinstance(rows, int):\n        rows = torch.arange(rows)\n"
        "    if isinstance(rows, np.ndarray):\n        rows = torch.from_numpy(rows)\n"
        "    return torch.outer(rows, rows)\n"
    )
    assert "of(rows)" in places(module, "torch.outer(rows, rows)")


def test_a_device_context_is_the_default_inside_of_it() -> None:
    module = inside("with torch.device(device):", "    a = torch.ones(2)", "b = torch.ones(3)",
                    "return a, b")  # fmt: skip
    assert places(module, "a") == "device(device)"
    assert places(module, "b") == "default"


def test_a_file_that_sets_the_default_device_says_nothing_of_factories() -> None:
    module = module_of(
        HEAD + "torch.set_default_device('cuda')\ndef f():\n    return torch.ones(2)\n"
    )
    assert places(module, "torch.ones(2)") == ""


def test_functions_of_other_files(tmp_path: Path) -> None:
    module = package(
        tmp_path,
        {
            "pkg/a.py": HEAD + "from .b import fresh, onto\n"
            "def f(x: Tensor, device):\n    return fresh(3), onto(x, device), onto(x, x.device)\n",
            "pkg/b.py": "import torch\ndef fresh(n):\n    return torch.zeros(n, 2)\n"
            "def onto(t, where):\n    return t.to(device=where)\n",
            "pkg/__init__.py": "",
        },
    )
    assert places(module, "fresh(3)") == "default"
    assert places(module, "onto(x, device)") == "device(device)"
    assert places(module, "onto(x, x.device)") == "of(x)"


def test_a_tokenizer_answers_on_the_cpu() -> None:
    module = inside('ids = tokenizer(text, return_tensors="pt")', "return ids.input_ids",
                    head="def f(tokenizer, text):")  # fmt: skip
    assert places(module, "ids.input_ids") == "host"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("z = n.rows() @ n.columns()",), "local(z)"),
        (("z = n.rows() @ n.columns()", "z = z.float()[:, 0] * 2"), "local(z)"),
        (("z = n.rows()", "n.append(z.size(0))"), "local(z)"),
        (("z = n.rows()", "z.unsqueeze_(0)"), ""),
        (("z = n.rows().mul(2).exp_()",), ""),
        (("w = n.rows() @ n.columns()", "z = w + x"), "of(x)"),
        (("z = Variable(torch.ones(2))",), "default"),
        (("z = x.mul(2).sqrt_()",), "of(x)"),
    ],
)
def test_what_is_computed_of_unknown_things_lies_where_its_variable_does(
    lines: tuple[str, ...], expected: str
) -> None:
    head = "from torch.autograd import Variable\n\n\ndef f(n, x: Tensor):"
    assert places(inside(*lines, "return z", head=head), "z") == expected


def test_a_variable_of_a_function_means_nothing_to_its_caller() -> None:
    made = "def made(n):\n    z = n.rows() @ n.columns()\n    return z\n\n\n"
    called = "def f(n):\n    w = made(n) + 1\n    return w\n"
    assert "local(z)" not in places(module_of(HEAD + made + called), "w")


def test_recursion_ends() -> None:
    module = inside("return f(x, y, n, device) + x")
    assert places(module, "x") == "of(x)"


def test_a_gradient_that_is_given_meets_what_it_is_a_gradient_of() -> None:
    module = inside(
        "torch.autograd.backward(x, torch.ones(n))",
        "x.backward(torch.ones(n))",
        "torch.autograd.grad(x, y, grad_outputs=torch.ones(n))",
        "x.backward()",
    )
    function = module.tree.outermost_function_of(find(module, "x.backward()"))
    assert function is not None
    met = [(each.operation, len(each.pairs)) for each in module.places(function).meetings]
    assert met == [("backward", 2), ("backward", 2), ("grad", 2)]


def test_the_argument_of_a_function_that_is_registered_on_a_tensor_is_one() -> None:
    source = (
        f"{HEAD}class Net(nn.Module):\n    def __init__(self, weight):\n"
        "        weight.register_hook(self.kept)\n\n"
        "    def kept(self, gradient):\n        return gradient * 2\n"
    )
    for hook, what in (("register_hook", "TENSOR"), ("register_forward_hook", "UNKNOWN")):
        module = module_of(source.replace("register_hook", hook))
        node = find(module, "gradient")
        function = module.tree.outermost_function_of(node)
        assert function is not None
        assert module.places(function).seen[node].what.name == what


def test_the_value_of_an_augmented_assignment_has_meetings_of_its_own() -> None:
    module = inside("y = x.norm(dim=1)", "x /= torch.max(y, torch.ones(n))")
    node = find(module, "torch.max(y, torch.ones(n))")
    function = module.tree.outermost_function_of(node)
    assert function is not None
    assert [each.operation for each in module.places(function).meetings] == ["max", "Div"]


@pytest.mark.parametrize("number", ["math.pi", "np.inf", "torch.e"])
def test_constants_of_libraries_are_numbers(number: str) -> None:
    head = "import math\nimport numpy as np\ndef f(a):"
    expression = f"2 * {number} * torch.rand(a.rows, a.columns)"
    assert places(inside(f"return {expression}", head=head), expression) == "default"


def test_two_ways_to_make_it_on_the_default_device_are_one_place() -> None:
    made = "torch.zeros(1) if x.ndim == 2 else torch.zeros(x.shape[0], 1)"
    assert places(inside(f"return {made}"), made) == "default"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("nn.Linear(4, 4), nn.Linear(4, 4)", "default"),
        ("nn.Linear(4, 4).to(device), nn.Linear(4, 4).to(device)", "device(device)"),
        ("nn.Linear(4, 4).to(device), nn.Linear(4, 4).to(x.device)", ""),
        ("nn.Linear(4, 4).to(device), nn.Linear(4, 4)", ""),
    ],
)
def test_a_sequence_lies_where_all_its_parts_were_put(parts: str, expected: str) -> None:
    expression = f"nn.Sequential({parts})"
    assert places(inside(f"return {expression}"), expression) == expected
