from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule

_ABOUT_OFFLOAD = ("offload", "onload", "is_meta", "save_pretrained")


class OffloadGuardIncomplete(Rule):
    """ "Is it offloaded?" is decided by a test that misses a case.

    ## What it does
    Flags a decision about offloading made by `len(set(device_map.values())) > 1`, or by
    `"cpu" in device_map.values()`, where `"disk"` is not asked for in the same condition.

    ## Why is this bad?
    A model wholly on disk has one device in its map; one spread over GPU and disk has no
    `"cpu"`. Both are then taken for not offloaded: their weights are still on meta when they
    are saved or converted.

    ## Example
    ```python
    is_offloaded = len(set(model.hf_device_map.values())) > 1
    ```
    Use instead:
    ```python
    places = set(model.hf_device_map.values())
    is_offloaded = len(places) > 1 or "disk" in places
    ```

    ## Fix safety
    Unsafe: the added case runs code that did not run before.

    ## References
    - transformers `save_pretrained` and `from_pretrained`, which ask for both
    - vllm-project/compressed-tensors pull request 357
    """

    code = "OFF103"
    name = "offload-guard-incomplete"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    triggers = (("device_map", "offload"),)

    bad = (
        Bad(
            """\
def save(model):
    device_map = model.hf_device_map
    is_offloaded = len(set(device_map.values())) > 1
    if is_offloaded:
        onload(model)
""",
            lines=(3,),
            fixed="""\
def save(model):
    device_map = model.hf_device_map
    is_offloaded = (len(set(device_map.values())) > 1 or "disk" in device_map.values())
    if is_offloaded:
        onload(model)
""",
        ),
        Bad(
            """\
def save(model, device_map):
    if "cpu" in device_map.values():
        state_dict = load_offloaded(model)
""",
            lines=(2,),
            fixed="""\
def save(model, device_map):
    if ("cpu" in device_map.values() or "disk" in device_map.values()):
        state_dict = load_offloaded(model)
""",
        ),
    )
    good = (
        Good(
            """\
def save(model, device_map):
    if "cpu" in device_map.values() or "disk" in device_map.values():
        state_dict = load_offloaded(model)
"""
        ),
        Good(
            """\
def load(model, device_map):
    if len(set(device_map.values())) > 1 or "disk" in set(device_map.values()):
        offload(model)
"""
        ),
        Good(
            """\
def place(model, device_map, offload_folder):
    if len(set(device_map.values())) == 1:
        return model.to(next(iter(device_map.values())))
"""
        ),
        Good(
            """\
def configure(self, device_map):
    self.offload_to_cpu = "cpu" in device_map.values()
"""
        ),
        Good(
            """\
def synchronise(self, device_map, offload):
    if len(set(device_map.values())) > 1:
        barrier()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for test in module.nodes(ast.Compare):
            subject = _several_devices(test) or _on_cpu(test)
            if subject is None or "device_map" not in module.text(subject):
                continue
            decision = _whole_condition(module, test)
            if "disk" in module.text(decision) or self._disk_asked(module, test):
                continue
            if not _decides_offloading(module, decision):
                continue
            yield self.finding(
                module,
                test,
                f"`{module.text(test)}` misses a model that lies on disk",
                trail=[(decision, "this condition decides whether weights are offloaded")],
                fixes=[self._with_disk(module, test, subject)],
            )

    def _disk_asked(self, module: Module, test: ast.Compare) -> bool:
        if any(guard.mentions("disk") for guard in module.guards_of(test)):
            return True
        statement = module.statement_of(test)
        branches = statement.orelse if isinstance(statement, ast.If) else []
        return any("disk" in module.text(each).split("\n")[0] for each in branches)

    def _with_disk(self, module: Module, test: ast.Compare, subject: ast.expr) -> Fix | None:
        text = module.text(test)
        asked = module.replace(test, f'({text} or "disk" in {module.text(subject)})')
        return module.fix("ask for disk too", Safety.UNSAFE, asked)


def _several_devices(test: ast.Compare) -> ast.expr | None:
    """`X` of `len(set(X)) > 1`."""
    if not isinstance(test.ops[0], (ast.Gt, ast.NotEq)) or not _is(test.comparators[0], 1):
        return None
    inner = test.left
    for name in ("len", "set"):
        if not (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.args):
            return None
        if inner.func.id != name:
            return None
        inner = inner.args[0]
    return inner


def _on_cpu(test: ast.Compare) -> ast.expr | None:
    """`X` of `"cpu" in X`."""
    if isinstance(test.ops[0], ast.In) and _is(test.left, "cpu"):
        return test.comparators[0]
    return None


def _is(node: ast.expr, constant: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == constant


def _whole_condition(module: Module, test: ast.expr) -> ast.expr:
    top = test
    for up in module.ancestors(test):
        if not isinstance(up, (ast.BoolOp, ast.UnaryOp)):
            break
        top = up
    return top


def _decides_offloading(module: Module, decision: ast.expr) -> bool:
    """What hangs on the condition is offloading, and not the CPU in particular."""
    statement = module.statement_of(decision)
    if isinstance(statement, ast.Assign):
        targets = " ".join(module.text(each) for each in statement.targets)
        return "offload" in targets and "cpu" not in targets
    if isinstance(statement, ast.If) and decision is statement.test:
        body = " ".join(module.text(each) for each in statement.body)
        about = any(word in body for word in _ABOUT_OFFLOAD)
        return about and not any(isinstance(each, ast.Raise) for each in statement.body)
    return False
