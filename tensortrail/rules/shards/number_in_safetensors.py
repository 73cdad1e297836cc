from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import is_before, is_name
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.sentences import one_line

_SAVES = ("safetensors.torch.save_file", "safetensors.torch.save")
_NUMBERS = frozenset("int float bool str len round time.time".split())


class NumberInSafetensors(Rule):
    """A number is saved by safetensors, whose files hold tensors, and texts as metadata.

    ## What it does
    Reports `save_file(values, ...)` of `safetensors.torch` if the dict

    - has a number, a text or `optimizer.state_dict()` under a key, in `{...}` or by
      `values["epoch"] = 3`; or
    - is the metadata and has a number under a key.

    ## Why is this bad?
    Nothing is saved: the call raises.

    ## What you may see
    ```
    ValueError: Key `epoch` is invalid, expected torch.Tensor but received <class 'int'>
    TypeError: argument 'metadata': 'int' object is not an instance of 'str'
    ```

    ## Fix safety
    No fix is offered: numbers belong into `metadata={...}` as strings, or into another file.

    ## References
    - Mikubill/sd-webui-controlnet issue 895
    """

    code = "SHD454"
    name = "number-in-safetensors"
    severity = Severity.ERROR
    triggers = (("safetensors", "save_file"), ("safetensors", "save("))

    bad = (
        Bad(
            """\
from safetensors.torch import save_file

def save(model, optimizer, path, loss):
    checkpoint = dict(model.state_dict())
    checkpoint["epoch"] = 12
    save_file(checkpoint, path)
    save_file({"w": model.weight, "optimizer": optimizer.state_dict()}, path)
    save_file(model.state_dict(), path, metadata={"format": "pt", "loss": loss.item(), "n": 3})
""",
            lines=(5, 7, 8),
            instead="""\
from safetensors.torch import save_file

def save(model, path, loss):
    checkpoint = dict(model.state_dict())
    save_file(checkpoint, path, metadata={"epoch": "12", "loss": str(loss.item())})
""",
        ),
    )
    good = (
        Good(
            """\
from safetensors.torch import save_file

def save(model, path, epoch):
    checkpoint = dict(model.state_dict())
    checkpoint["scale"] = model.scale
    save_file(checkpoint, path, metadata={"format": "pt", "epoch": str(epoch), "n": "3"})
    checkpoint["epoch"] = 12
    return checkpoint

def rebuilt(model, path):
    values = {"epoch": 3}
    values = model.state_dict()
    save_file(values, path)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*_SAVES):
            tensors = module.argument(call, 0, "tensors")
            place = 2 if module.qualified(call.func) == _SAVES[0] else 1
            metadata = module.argument(call, place, "metadata")
            for at, key, value in _entries(module, call, tensors):
                if _is_no_tensor(module, value):
                    yield self._found(module, at, call, key, value, "tensors")
            for at, key, value in _entries(module, call, metadata):
                if _is_no_tensor(module, value) and not _is_text(module, value):
                    yield self._found(module, at, call, key, value, "texts as metadata")

    def _found(
        self,
        module: Module,
        at: ast.AST,
        call: ast.Call,
        key: ast.expr,
        value: ast.expr,
        holds: str,
    ) -> Finding:
        return self.finding(
            module,
            at,
            f"`{one_line(module, value)}` under {one_line(module, key)} is refused: safetensors "
            f"stores {holds} only",
            trail=[(call, "saved here")],
        )


def _entries(
    module: Module, call: ast.Call, given: ast.expr | None
) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """Where it is put, key and value, of the dict that the call is given."""
    if given is None:
        return
    made = behind(module, given)
    if isinstance(made, ast.Dict):
        for key, value in zip(made.keys, made.values, strict=True):
            if key is not None:
                yield value if made is given else made, key, value
    if not isinstance(given, ast.Name):
        return
    function = module.function_of(call)
    made_at = module.value_of(given).origins
    for assign in module.nodes(ast.Assign, function):
        place = assign.targets[0]
        if isinstance(place, ast.Subscript) and is_name(place.value, given.id):
            after = len(made_at) == 1 and is_before(made_at[0], assign)
            if after and any(each is call for each in module.later(assign, ast.Call)):
                yield assign, place.slice, assign.value


def _is_no_tensor(module: Module, value: ast.expr) -> bool:
    value = behind(module, value)
    if isinstance(value, ast.Constant):
        return value.value is not None
    if isinstance(value, (ast.JoinedStr, ast.List, ast.Dict)):
        return True
    if not isinstance(value, ast.Call):
        return False
    method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
    return method in ("item", "state_dict", "tolist") or module.qualified(value.func) in _NUMBERS


def _is_text(module: Module, value: ast.expr) -> bool:
    value = behind(module, value)
    if isinstance(value, ast.Constant):
        return isinstance(value.value, str)
    named = isinstance(value, ast.Call) and module.qualified(value.func) == "str"
    return named or isinstance(value, ast.JoinedStr)
