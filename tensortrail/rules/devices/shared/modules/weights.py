"""What a class or function shows of a model's weights: components, hooks, parameters, buffers."""

from __future__ import annotations

import ast

from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

_HOOKED = ("_hf_hook", "is_module_offloaded", "has_offloaded_params")
_PIPELINES = ("DiffusionPipeline", "ModularPipeline", "ModularPipelineBlocks")


def is_pipeline(module: Module, cls: ast.ClassDef) -> bool:
    facts = module.class_facts(cls)
    return facts is not None and any(each.rpartition(".")[2] in _PIPELINES for each in facts.bases)


def is_made_for_offloading(module: Module, node: ast.AST) -> bool:
    """The class around it speaks of offloading, or is a block of a pipeline, which has no say in
    that."""
    cls = module.class_of(node)
    facts = module.class_facts(cls) if cls is not None else None
    if cls is None or facts is None:
        return False
    said = module.text(cls)
    if not any(each.rpartition(".")[2] == "DiffusionPipeline" for each in facts.bases):
        return True
    inherited = any("offload" in each for each in facts.fields | facts.methods)
    return inherited or "offload" in said or "maybe_free_model_hooks" in said


def component_of(module: Module, call: ast.Call) -> str:
    """`self.vae` of `self.vae.encode(...)` and `self.vae(...)`."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("encode", "decode", "forward"):
        func = func.value
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        return module.text(func) if func.value.id in ("self", "components") else ""
    if isinstance(func, ast.Name):
        sources = [module.text(each) for each in module.value_of(func).origins]
        held = sources and all(each.startswith(("self.", "components.")) for each in sources)
        return func.id if held and all(each.count(".") == 1 for each in sources) else ""
    return ""


def owner_of_parameters(call: ast.Call) -> ast.expr | None:
    """`m` of `next(m.parameters())`."""
    inner = call.args[0] if call.args else None
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.args:
        inner = inner.args[0]  # iter(m.parameters())
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        return inner.func.value if inner.func.attr == "parameters" else None
    return None


def knows_hooks(module: Module, function: FunctionNode) -> bool:
    text = module.text(function)
    return any(word in text for word in _HOOKED)


def tests_meta(module: Module, function: FunctionNode) -> bool:
    """The function compares the type of a device, or speaks of meta."""
    return "meta" in module.text(function) or any(
        isinstance(each.left, ast.Attribute) and each.left.attr == "type"
        for each in module.nodes(ast.Compare, function)
    )


def has_buffers_only(module: Module, node: ast.AST) -> bool:
    """The class registers buffers and has, as far as it can be read, nothing else."""
    cls = module.class_of(node)
    facts = module.class_facts(cls) if cls is not None else None
    if cls is None or facts is None or not facts.is_module or not facts.complete:
        return False
    if list(facts.bases) != ["torch.nn.Module"]:
        return False
    text = module.text(cls)
    if "register_buffer" not in text or "Parameter" in text or "register_parameter" in text:
        return False
    return not _holds_modules(module, cls)


def _holds_modules(module: Module, cls: ast.ClassDef) -> bool:
    """Something assigned to `self` may be a module with parameters."""
    for node in module.nodes(ast.Attribute, cls):
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            value = module.value_of(node)
            statement = module.statement_of(node)
            made = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
            if node.value.id == "self" and made and not value.kinds:
                return True
            if node.value.id == "self" and value.kind is Kind.MODULE:
                return True
    return False


def reads_device(module: Module, function: FunctionNode) -> bool:
    return any(each.attr == "device" for each in module.nodes(ast.Attribute, function))


def is_of_weights(module: Module, device: ast.expr) -> bool:
    """`self.device`, `self.model.device`, `next(self.parameters()).device`."""
    if not isinstance(device, ast.Attribute) or device.attr != "device":
        return False
    text = module.text(device.value)
    return text == "self" or text.startswith("next(self.")
