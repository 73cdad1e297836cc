"""A small library in the shape of Torch-TensorRT, written for tests: the names, the settings and
the moves of the genuine one, and no engine."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "__init__.py": """\
from torch_tensorrt.dynamo import utils
from torch_tensorrt.dynamo import _compiler
from torch_tensorrt.dynamo.runtime import _MutableTorchTensorRTModule

def compile(module, ir="default", inputs=None, **kwargs):
    return _compiler.compile(module, inputs, **kwargs)
""",
    "dynamo/__init__.py": "",
    "dynamo/utils.py": """\
def deallocate_module(module):
    module.to("cpu")
""",
    "dynamo/_compiler.py": """\
import copy
from torch_tensorrt.dynamo.utils import deallocate_module

def compile(module, inputs=None, *, offload_module_to_cpu=False, **kwargs):
    engine = copy.deepcopy(module)
    if offload_module_to_cpu:
        deallocate_module(module)
    return engine
""",
    "dynamo/runtime/__init__.py": "",
    "dynamo/runtime/_MutableTorchTensorRTModule.py": """\
import torch
from torch_tensorrt.dynamo._compiler import compile as dynamo_compile
from torch_tensorrt.dynamo.utils import deallocate_module

class MutableTorchTensorRTModule:
    def __init__(self, model, **kwargs):
        self.original_model, self.additional_settings = model, kwargs
    def compile(self):
        self.gm = dynamo_compile(self.original_model, **self.additional_settings)
    def refit_gm(self):
        self.gm.load_state_dict(self.original_model.state_dict())
        deallocate_module(self.original_model)
    def update_refit_condition(self):
        self.original_model.to("cuda")
        deallocate_module(self.original_model)
    @staticmethod
    def load(path):
        module = torch.load(path, weights_only=False)
        module.original_model.to("cuda")
        deallocate_module(module.original_model)
        return module
""",
}


def install(packages: Path) -> None:
    for name, text in FILES.items():
        path = packages / "torch_tensorrt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
