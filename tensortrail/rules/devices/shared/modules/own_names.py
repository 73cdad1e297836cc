"""What a model has that no other module has."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module

_OF_MODULES = frozenset(
    "forward training module device_ids output_device dim train eval to cuda cpu half float "
    "parameters named_parameters buffers named_buffers children modules state_dict "
    "load_state_dict zero_grad requires_grad_ apply register_buffer no_sync join".split()
)


def own_names(module: Module, model: ast.expr) -> frozenset[str]:
    """Methods and attributes of its class in the project, and of no other `nn.Module`."""
    cls = module.value_of(model).cls
    facts = module.class_facts(cls) if cls else None
    base = module.class_facts("torch.nn.modules.module.Module")
    if facts is None or not facts.file:
        return frozenset()
    return (facts.methods | facts.fields) - (base.methods if base else frozenset()) - _OF_MODULES
