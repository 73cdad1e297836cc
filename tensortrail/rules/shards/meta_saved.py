from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule

_EMPTY = re.compile(r"init_empty_weights|init_on_device|torch\.device\(.meta.\)|device\(.meta.\)")
_FILLS = re.compile(
    r"to_empty|load_checkpoint|load_state_dict|dispatch|from_pretrained|materiali[sz]e|load_model"
    r"|set_module_tensor|init_weights|reset_parameters|onload|tie_weights|init_states"
)
_WRITERS = ("torch.save", "safetensors.torch.save_file", "safetensors.torch.save_model",
            "accelerate.utils.save")  # fmt: skip
_COLLECTS = ("get_state_dict_offloaded_model", "get_state_dict_from_offload")


class MetaSaved(Rule):
    """A checkpoint is written from a model whose weights may be placeholders on meta.

    ## What it does
    Flags `torch.save`, `save_file` and `save_pretrained` of a model that was built under
    `init_empty_weights` or on the meta device and never filled, or that was handed to
    accelerate's `cpu_offload` or `disk_offload`; and a save beside a branch that does collect
    the offloaded weights first.

    ## Why is this bad?
    A meta tensor has a shape and no data. `torch.save` writes it without a complaint: the file
    is small, complete by its keys, and empty.

    ## Example
    ```python
    with init_empty_weights():
        model = Model(config)
    torch.save(model.state_dict(), path)
    ```
    Use instead:
    ```python
    state_dict = get_state_dict_offloaded_model(model)
    torch.save(state_dict, path)
    ```

    ## Fix safety
    No fix is offered: where the weights are to come from is not in the code.

    ## References
    - vllm-project/llm-compressor pull request 172
    """

    code = "SHD405"
    name = "meta-saved"
    severity = Severity.ERROR
    triggers = (
        ("init_empty_weights", "save"),
        ('"meta"', "torch.save"),
        ('"meta"', "save_file"),
        ('"meta"', "save_pretrained"),
        ("'meta'", "torch.save"),
        ("_offload(", "torch.save"),
        ("_offload(", "save_file"),
        ("get_state_dict_offloaded_model", "save_pretrained"),
        ("get_state_dict_from_offload", "save_pretrained"),
    )

    bad = (
        Bad(
            """\
import torch
from accelerate import init_empty_weights

def export(config, path):
    with init_empty_weights():
        model = Model(config)
    torch.save(model.state_dict(), path)
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch
from accelerate import disk_offload

def export(model: torch.nn.Module, path):
    disk_offload(model, "weights")
    torch.save(model.state_dict(), path)
""",
            lines=(6,),
        ),
        Bad(
            """\
def save_pretrained_wrapper(model, original_save_pretrained, save_directory, compressor, **kwargs):
    if compressor is None:
        original_save_pretrained(save_directory, **kwargs)
        return
    state_dict = get_state_dict_offloaded_model(model)
    original_save_pretrained(save_directory, state_dict=state_dict, **kwargs)
""",
            lines=(3,),
        ),
    )
    good = (
        Good(
            """\
import torch
from accelerate import init_empty_weights

def export(config, path, weights):
    with init_empty_weights():
        model = Model(config)
    model.load_state_dict(torch.load(weights), assign=True)
    torch.save(model.state_dict(), path)
"""
        ),
        Good(
            """\
import torch
from accelerate import disk_offload

def export(model: torch.nn.Module, path):
    disk_offload(model, "weights")
    model.save_pretrained(path)
"""
        ),
        Good(
            """\
import torch

def export(model: torch.nn.Module, path):
    torch.save(model.state_dict(), path)
"""
        ),
        Good(
            """\
def save_pretrained_wrapper(model, original_save_pretrained, save_directory, state_dict=None):
    if state_dict is None:
        state_dict = get_state_dict_offloaded_model(model)
    original_save_pretrained(save_directory, state_dict=state_dict)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.nodes(ast.Call):
            written = _written(module, call)
            if written is None:
                continue
            placed = module.value_of(written).placement
            offloaded = placed.device == "offloaded" and not _is_save_pretrained(call)
            if placed.device == "meta" or offloaded:
                yield self._meta(module, call, written, placed.by, "puts its weights on meta")
                continue
            built = _built_empty(module, written, call)
            if built is not None:
                yield self._meta(module, call, written, built, "builds it without any data")
        yield from self._other_branch(module)

    def _meta(
        self, module: Module, call: ast.Call, written: ast.expr, by: ast.AST | None, how: str
    ) -> Finding:
        return self.finding(
            module,
            call,
            f"`{module.text(written)}` is saved, but its weights are placeholders without data",
            trail=[(by, f"this {how}")],
        )

    def _other_branch(self, module: Module) -> Iterator[Finding]:
        for collect in module.calls(*_COLLECTS):
            function = module.function_of(collect)
            if function is None or not collect.args:
                continue
            for call in module.nodes(ast.Call, function):
                if "save_pretrained" not in module.text(call.func) or call.lineno > collect.lineno:
                    continue
                passes = any(keyword.arg == "state_dict" for keyword in call.keywords)
                leaves = any(
                    isinstance(each, ast.Return) for each in module.later(call, ast.Return)
                )
                if passes or not leaves or not module.guards_of(call):
                    continue
                if any(guard.mentions("offload") for guard in module.guards_of(call)):
                    continue
                yield self.finding(
                    module,
                    call,
                    "this branch saves without collecting the offloaded weights, as the other does",
                    severity=Severity.WARNING,
                    confidence=Confidence.MEDIUM,
                    trail=[(collect, "the offloaded weights are collected only here")],
                )


def _written(module: Module, call: ast.Call) -> ast.expr | None:
    """The model that a call writes to a file."""
    if _is_save_pretrained(call) and isinstance(call.func, ast.Attribute):
        return call.func.value
    if module.qualified(call.func) not in _WRITERS or not call.args:
        return None
    given = call.args[0]
    origins = module.value_of(given).origins
    if isinstance(given, ast.Name) and len(origins) == 1:
        given = origins[0]
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
        if given.func.attr == "state_dict":
            return given.func.value
        return None
    return given if module.kind_of(given) is Kind.MODULE else None


def _is_save_pretrained(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "save_pretrained"


def _built_empty(module: Module, written: ast.expr, call: ast.Call) -> ast.expr | None:
    """The construction under an empty-weights context that nothing has filled since."""
    origins = module.value_of(written).origins
    if len(origins) != 1 or not isinstance(written, ast.Name):
        return None
    built = origins[0]
    if not any(_EMPTY.search(module.text(each)) for each in module.contexts_of(built)):
        return None
    for between in module.later(built, ast.Call):
        if between is call or between.lineno >= call.lineno:
            break
        text = module.text(between)
        if _FILLS.search(text) or any(module.text(each) == written.id for each in between.args):
            return None
    return built
