"""Shapes of Python files that make a lint work more than their size explains, in any size.

Each shape is a function of N; its parts stand N times beside each other, in a row or one inside
the other."""

from __future__ import annotations

from collections.abc import Callable

from tensortrail.rules import all_rules


def _head() -> str:
    """Imports, and a text with the words that every rule waits for: so all rules look at it."""
    examples = "".join(
        bad.source for rule in all_rules().values() if rule.reads_code() for bad in rule.bad
    )
    return f"import torch\nfrom torch import nn\n_ = {examples!r}\n".replace("\\n", "\\n\\\n")


HEAD = _head()

Shape = Callable[[int], str]
ASKS = "    return model.device == 'cpu', model.a.data_ptr() == model.b.data_ptr()\n"
"""A line at which rules ask for values, so that the function around it is run."""


def findings(n: int) -> str:
    """Findings in one function, each with a fix."""
    body = "".join(f"    if t{i}.device == 'cpu':\n        note({i})\n" for i in range(n))
    names = ", ".join(f"t{i}: torch.Tensor" for i in range(n))
    return f"{HEAD}\ndef f({names}):\n{body}"


def findings_apart(n: int) -> str:
    """Findings in a function each, each with a fix."""
    return HEAD + "".join(
        f"def f{i}(t: torch.Tensor):\n    return t.device == 'cpu'\n\n" for i in range(n)
    )


def methods_with_findings(n: int) -> str:
    """Methods of one class that move what they were given, with a setting that goes unasked."""
    return (
        f"{HEAD}\nclass A:\n    def __init__(self, offload_to_cpu: bool):\n"
        "        self.offload_to_cpu = offload_to_cpu\n\n"
    ) + "".join(
        f"    def f{i}(self, model: nn.Module):\n        model.to('cpu')\n        return model\n\n"
        for i in range(n)
    )


def silenced(n: int) -> str:
    """Findings with a comment each that silences them."""
    return HEAD + "".join(
        f"def f{i}(t: torch.Tensor):\n    return t.device == 'cpu'  # tensortrail: ignore[DEV501]\n"
        for i in range(n)
    )


def tries(n: int) -> str:
    """`try` blocks in one function."""
    body = "".join(
        f"    try:\n        x{i} = model.to('cpu')\n    except OSError as error:\n"
        f"        x{i} = None\n        raise error\n"
        for i in range(n)
    )
    return f"{HEAD}\ndef f(model):\n{body}{ASKS}"


def loops(n: int) -> str:
    """Loops in one function."""
    body = "".join(
        f"    for x{i} in model.parameters():\n        y{i} = x{i}.cpu()\n" for i in range(n)
    )
    return f"{HEAD}\ndef f(model: nn.Module):\n{body}{ASKS}"


def branches(n: int) -> str:
    """`if` and `else` in one function."""
    body = "".join(
        f"    if flag{i}:\n        x{i} = model.to('cpu')\n    else:\n        x{i} = model.data\n"
        for i in range(n)
    )
    return f"{HEAD}\ndef f(model):\n{body}{ASKS}"


def early_returns(n: int) -> str:
    """Conditions that hold for all that follows."""
    body = "".join(f"    if x{i}.device == 'cpu':\n        return model.cpu()\n" for i in range(n))
    return f"{HEAD}\ndef f(model: nn.Module):\n{body}{ASKS}"


def assignments(n: int) -> str:
    """Names bound in one function."""
    body = "".join(f"    x{i} = model.a{i}.to('cpu')\n    x{i}.b = x{i}.data\n" for i in range(n))
    return f"{HEAD}\ndef f(model: nn.Module):\n{body}{ASKS}"


def chained(n: int) -> str:
    """Pointers compared in one `and`."""
    tests = " and ".join(f"a{i}.data_ptr() == b{i}.data_ptr()" for i in range(n))
    return f"{HEAD}\ndef shared(a, b):\n    return {tests}\n"


def added(n: int) -> str:
    """One sum of many terms: a tree as deep as it is long."""
    total = " + ".join(["x.data"] * n)
    return f"{HEAD}\ndef f(x: torch.Tensor):\n    return {total}, x.device == 'cpu'\n"


def dotted(n: int) -> str:
    """One chain of calls: a tree as deep as it is long."""
    return f"{HEAD}\ndef f(x: torch.Tensor):\n    return x{'.to(1)' * n}, x.device == 'cpu'\n"


def subclasses(n: int) -> str:
    """A chain of subclasses."""
    body = "        return self.weight.device == 'cpu'\n\n"
    return f"{HEAD}\nclass A0(nn.Module):\n    pass\n\n" + "".join(
        f"class A{i + 1}(A{i}):\n    def f{i}(self):\n{body}" for i in range(n)
    )


def functions(n: int) -> str:
    """Functions that call each other."""
    body = "    return model.to(device), model.a.device == 'cpu'\n\n"
    return HEAD + "".join(
        f"def f{i}(model, device):\n    f{i - 1}(model, device)\n{body}" for i in range(n)
    )


def calls_on_a_line(n: int) -> str:
    """One line of calls."""
    return f"{HEAD}{';'.join(['f(x.cpu())'] * n)}\n"


def elifs(n: int) -> str:
    """A chain of `elif`."""
    body = "".join(
        f"    elif x.device == {i}:\n        y = model.to('cpu')\n" for i in range(1, n + 1)
    )
    return f"{HEAD}\ndef f(model, x):\n    if x.device == 0:\n        y = 0\n{body}{ASKS}"


def cases(n: int) -> str:
    """The cases of a `match`."""
    body = "".join(f"        case {i}:\n            y = model.to('cpu')\n" for i in range(n))
    return f"{HEAD}\ndef f(model, x):\n    match x:\n{body}{ASKS}"


def nested_brackets(n: int) -> str:
    """Brackets as deep as the parser takes them."""
    depth = 80
    line = f"x = {'[' * depth}model.to('cpu'){']' * depth}\n"
    return HEAD + line * (n // depth + 1)


def nested_functions(n: int) -> str:
    """Functions in functions, and conditions in them, as deep as the parser takes them."""
    depth = 18
    unit = "".join(
        f"{'  ' * i}{head}\n"
        for i, head in enumerate(["def f(model, x):", "if x.device == 'cpu':"] * (depth // 2))
    )
    return HEAD + f"{unit}{'  ' * depth}model.to('cpu'), model.device == 'cpu'\n" * (n // depth + 1)


def suites(n: int) -> str:
    """Loops in loops in conditions, as deep as the parser takes them."""
    heads = ["for x in y:", "try:", "with x:", "if y:"]
    depth = 16
    unit = "def f(model, x, y):\n"
    unit += "".join(f"{'  ' * (i + 1)}{heads[i % 4]}\n" for i in range(depth))
    unit += f"{'  ' * (depth + 1)}y = model.to('cpu'), model.device == 'cpu'\n"
    unit += "".join(
        f"{'  ' * (i + 1)}except OSError:\n{'  ' * (i + 2)}x = y\n"
        for i in reversed(range(depth))
        if heads[i % 4] == "try:"
    )
    return HEAD + unit * (n // depth + 1)


def entries(n: int) -> str:
    """A table of one display."""
    return HEAD + "TABLE = {\n" + "".join(f"    'k{i}': f(x.cpu()),\n" for i in range(n)) + "}\n"


def comments(n: int) -> str:
    """Lines of comment above a finding."""
    return (
        f"{HEAD}def f(t: torch.Tensor):\n{'    # why' * 1}\n"
        + "    # why\n" * n
        + ("    return t.device == 'cpu'\n")
    )


def attributes(n: int) -> str:
    """Attributes of one class, read in its methods."""
    stores = "".join(f"        self.a{i} = nn.Linear(1, {i})\n" for i in range(n))
    reads = "".join(
        f"    def f{i}(self):\n        return self.a{i}.weight.device == 'cpu'\n" for i in range(n)
    )
    return f"{HEAD}\nclass A(nn.Module):\n    def __init__(self):\n{stores}\n{reads}"


SHAPES: dict[str, Shape] = {
    shape.__name__: shape
    for shape in (
        findings,
        findings_apart,
        methods_with_findings,
        silenced,
        tries,
        loops,
        branches,
        early_returns,
        assignments,
        chained,
        added,
        dotted,
        subclasses,
        functions,
        calls_on_a_line,
        elifs,
        cases,
        nested_brackets,
        nested_functions,
        suites,
        entries,
        comments,
        attributes,
    )
}


def of_size(shape: Shape, size: int) -> str:
    """The shape with at least `size` bytes."""
    n = 1000
    while len(source := shape(n)) < size:
        n = max(n + 1, int(n * size / len(source)) + 1)
    return source
