"""Arguments by name."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.functions import parameters
from tensortrail.testing.paraphrases.rewriting import FUNCTIONS, Rewrite, of_tree

_PARAMETERS = {
    "torch.save": ("obj", "f"),
    "torch.load": ("f",),
    "torch.empty_like": ("input",),
    "torch.zeros_like": ("input",),
    "torch.allclose": ("input", "other", "rtol", "atol"),
    "torch.testing.assert_close": ("actual", "expected"),
    "save_file": ("tensors", "filename"),
}


def _by_name(tree: ast.Module) -> None:
    own = {
        each.name: tuple(parameter.arg for parameter in parameters(each))
        for each in ast.walk(tree)
        if isinstance(each, FUNCTIONS) and not (each.args.vararg or each.args.posonlyargs)
    }
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and not any(isinstance(a, ast.Starred) for a in call.args):
            names = _names_of(call, own)
            if len(names) >= len(call.args) > 0:
                pairs = zip(names, call.args, strict=False)
                call.keywords = [*(ast.keyword(n, v) for n, v in pairs), *call.keywords]
                call.args = []


def _names_of(call: ast.Call, own: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to" and len(call.args) == 1:
        given = ast.unparse(call.args[0])
        is_dtype = given.endswith("dtype") or given.startswith(("torch.float", "torch.bfloat"))
        return ("dtype",) if is_dtype else ("device",)
    called = ast.unparse(call.func)
    return own.get(called, ()) or _PARAMETERS.get(called, ())


REWRITES: dict[str, Rewrite] = {"keyword argument": of_tree(_by_name)}
