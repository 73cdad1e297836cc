from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_before, keyword, names_in, within

_FOLDERS = ("offload_dir", "offload_folder")


class OffloadFolderGone(Rule):
    """Weights are offloaded to a temporary folder that is deleted while the model is still used.

    ## What it does
    Reports `disk_offload(..., offload_dir=folder)`, `dispatch_model`,
    `load_checkpoint_and_dispatch` or `from_pretrained(..., offload_folder=folder)` inside of
    `with tempfile.TemporaryDirectory() as folder:`, if the model is returned or used behind the
    `with` statement.

    ## Why is this bad?
    Weights on the disk are read again at every call of the model. Behind the `with` statement their
    files are gone.

    ## What you may see
    ```
    FileNotFoundError: [Errno 2] No such file or directory: '/tmp/tmpdx3_5f/0.weight.dat'
    ```

    ## Fix safety
    No fix is offered: the folder has to live as long as the model, `tempfile.mkdtemp()` for one.

    ## References
    - documentation of `accelerate.disk_offload`
    """

    code = "OFF125"
    name = "offload-folder-gone"
    severity = Severity.ERROR
    proven = False
    triggers = tuple(("TemporaryDirectory(", f"{each}") for each in _FOLDERS)

    bad = (
        Bad(
            """\
import tempfile

from accelerate import disk_offload

def load(net):
    with tempfile.TemporaryDirectory() as folder:
        disk_offload(net, offload_dir=folder)
    return net

def build(cls, name):
    with tempfile.TemporaryDirectory() as there:
        model = cls.from_pretrained(name, device_map="auto", offload_folder=there)
    return model.eval()
""",
            lines=(7, 12),
            instead="""\
import tempfile

from accelerate import disk_offload

def load(net):
    folder = tempfile.mkdtemp()
    disk_offload(net, offload_dir=folder)
    return net
""",
        ),
    )
    good = (
        Good(
            """\
import tempfile

from accelerate import disk_offload

def load(first, x):
    with tempfile.TemporaryDirectory() as folder:
        disk_offload(first, offload_dir=folder)
        y = first(x)
    return y

def anew(net, build, x):
    with tempfile.TemporaryDirectory() as there:
        disk_offload(net, offload_dir=there)
        y = net(x)
    net = build()
    return net, y

def kept(model, place):
    with tempfile.TemporaryDirectory() as other:
        disk_offload(model, offload_dir=place)
    return model, other
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for block in module.nodes(ast.With):
            folders = {name for item in block.items for name in _temporary(item)}
            for call in module.nodes(ast.Call, block) if folders else ():
                given = next((e for n in _FOLDERS if (e := keyword(call, n)) is not None), None)
                if given is None or not names_in(given) & folders:
                    continue
                use = _used_behind(module, block, call)
                if use is not None:
                    yield self.finding(
                        module,
                        call,
                        f"the weights lie in `{module.text(given)}`, which is deleted at the end "
                        f"of the `with` statement: line {use.lineno} uses `{use.id}` after it",
                        trail=[(block, "the folder lives as long as this"), (use, "used here")],
                    )


def _temporary(item: ast.withitem) -> Iterator[str]:
    made = item.context_expr
    if isinstance(made, ast.Call) and called(made) == "TemporaryDirectory":
        yield from names_in(item.optional_vars) if item.optional_vars is not None else ()


def _used_behind(module: Module, block: ast.With, call: ast.Call) -> ast.Name | None:
    """A read of the model behind the block: what the call is given, or what it gives."""
    statement = module.statement_of(call)
    models = names_in(call.args[0]) if call.args and isinstance(statement, ast.Expr) else set()
    if isinstance(statement, ast.Assign):
        models = {e.id for e in statement.targets if isinstance(e, ast.Name)}
    function = module.function_of(block)
    for name in sorted(models):
        for use in module.uses(name, function):
            if is_before(block, use) and not within(use, block, module):
                return use if isinstance(use.ctx, ast.Load) else None
    return None
