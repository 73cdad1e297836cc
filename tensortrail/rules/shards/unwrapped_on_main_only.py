from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.origins import behind

_UNWRAPS = ("unwrap_model", "extract_model_from_parallel", "unwrap")
_RANK = re.compile(r"main_process|\brank\b|_rank\b|is_master|is_main|is_rank|world_process_zero")
_OF_EVERY_MODULE = frozenset(
    (
        "parameters named_parameters buffers named_buffers modules named_modules children "
        "named_children state_dict load_state_dict train eval training to cuda cpu half float "
        "bfloat16 double zero_grad requires_grad_ apply forward module device register_buffer "
        "register_parameter register_forward_hook register_forward_pre_hook add_module no_sync "
        "get_parameter get_submodule get_buffer share_memory compile"
    ).split()
)


class UnwrappedOnMainOnly(Rule):
    """A model is unwrapped on the main process only, and all processes use it as unwrapped.

    ## What it does
    Reports `model.config`, `model.encode(...)` and other names that a wrapper does not have, after
    `model = accelerator.unwrap_model(model)` or `model = model.module` under a test of the rank,
    where the use is not under that test.

    ## Why is this bad?
    The other processes stop with an AttributeError, because their model is still a
    `DistributedDataParallel`, which has no attributes of the module inside. The main process then
    hangs at its next collective. With one process nothing happens.

    ## Fix safety
    No fix is offered: unwrap on every process, or use the model under the same test.

    ## References
    - kohya-ss/sd-scripts, textual inversion over several GPUs
    """

    code = "SHD441"
    name = "unwrapped-on-main-only"
    severity = Severity.WARNING
    triggers = (
        "unwrap_model",
        "extract_model_from_parallel",
        ("unwrap", "rank"),
        (".module", "rank"),
    )

    bad = (
        Bad(
            """\
def finish(accelerator, encoder, tokens, path):
    is_main = accelerator.is_main_process
    if is_main:
        encoder = accelerator.unwrap_model(encoder)
    accelerator.end_training()
    table = encoder.get_input_embeddings().weight[tokens]
    if is_main:
        table.save(path)
""",
            lines=(6,),
            instead="""\
def finish(accelerator, encoder, tokens, path):
    encoder = accelerator.unwrap_model(encoder)
    accelerator.end_training()
    table = encoder.get_input_embeddings().weight[tokens]
    if accelerator.is_main_process:
        table.save(path)
""",
        ),
        Bad(
            """\
import torch.distributed as dist

def closing(model):
    if dist.get_rank() == 0:
        model = model.module
        model.write()
    print(model.layers_used)
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
def finish(accelerator, encoder, tokens, path, batch):
    if accelerator.is_main_process:
        encoder = accelerator.unwrap_model(encoder)
        encoder.save_pretrained(path)
    encoder.eval()
    encoder(batch)
    if accelerator.is_main_process:
        return encoder.get_input_embeddings().weight[tokens]

def again(accelerator, encoder, path):
    if accelerator.is_main_process:
        encoder = accelerator.unwrap_model(encoder)
    encoder = accelerator.unwrap_model(encoder)
    return encoder.config

def left(accelerator, encoder):
    if not accelerator.is_main_process:
        return None
    encoder = accelerator.unwrap_model(encoder)
    return encoder.config
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign in module.nodes(ast.Assign):
            name = _unwrapped(module, assign)
            if not name or not _by_rank(module, assign):
                continue
            use = _used_by_all(module, assign, name)
            if use is not None:
                yield self.finding(
                    module,
                    use,
                    f"`{name}` was unwrapped on the main process only: on the others it is still "
                    f"the wrapper, which has no `{use.attr}`",
                    trail=[(assign, "unwrapped under a test of the rank"), (use, "used by all")],
                )


def _unwrapped(module: Module, assign: ast.Assign) -> str:
    """`model` of `model = accelerator.unwrap_model(model)` and of `model = model.module`."""
    target, value = assign.targets[0], behind(module, assign.value)
    if not isinstance(target, ast.Name):
        return ""
    inner: ast.expr | None = None
    if isinstance(value, ast.Call) and called(value) in _UNWRAPS and value.args:
        inner = value.args[0]
    elif isinstance(value, ast.Attribute) and value.attr == "module":
        inner = value.value
    return target.id if isinstance(inner, ast.Name) and inner.id == target.id else ""


def _by_rank(module: Module, node: ast.AST) -> bool:
    return any(_RANK.search(ast.unparse(each.test)) for each in module.guards_of(node))


def _used_by_all(module: Module, assign: ast.Assign, name: str) -> ast.Attribute | None:
    """The first use of what only the module inside has, unless all unwrap it before."""
    bound = _bound_again(module, assign, name)
    for use in module.later(assign, ast.Attribute):
        if not isinstance(use.value, ast.Name) or use.value.id != name:
            continue
        if bound is not None and (use.lineno, use.col_offset) > bound:
            return None
        if use.attr not in _OF_EVERY_MODULE and not _asked(module, use, name):
            return use
    return None


def _bound_again(module: Module, assign: ast.Assign, name: str) -> tuple[int, int] | None:
    for other in module.later(assign, ast.Assign):
        bound = {
            each.id for t in other.targets for each in ast.walk(t) if isinstance(each, ast.Name)
        }
        if name in bound and other is not assign:
            return other.lineno, other.col_offset
    return None


def _asked(module: Module, use: ast.Attribute, name: str) -> bool:
    """The rank, or what the name means, is asked before."""
    if module.function_of(use) is None and _by_rank(module, use):
        return True
    tests = [ast.unparse(each.test) for each in module.guards_of(use)]
    return any(_RANK.search(test) or name in test for test in tests)
