from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.sharing import (
    Shared,
    containers_of_trained,
    in_the_same_loop,
)
from tensortrail.rules.shared.dtypes import is_dtype
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, keyword, receiver
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_SHORT = ("half", "bfloat16", "double")


class TrainedModuleCast(Rule):
    """A pipeline is cast to another dtype, and so is the module in it that is being trained.

    ## What it does
    Reports `pipeline.to(dtype=...)`, `pipeline.to(device, dtype=...)` and `pipeline.half()`, if the
    pipeline was made in the training loop from the trained module (`unet=unwrap_model(unet)`). The
    cast may be in a function of the file that is given the pipeline.

    Not reported: a copy of the module, and a pipeline that is made after the loop.

    ## Why is this bad?
    Training gets worse, or the next step raises "Attempting to unscale FP16 gradients": the
    pipeline holds the module itself, not a copy. The trained weights are float32 on purpose. In
    half precision they lose small updates.

    ## Fix safety
    No fix is offered: usually the `dtype` can be left out, and `autocast` put around the call.

    ## References
    - huggingface/diffusers, validation in the training scripts for LoRA
    """

    code = "DEV561"
    name = "trained-module-cast"
    confidence = Confidence.MEDIUM
    triggers = (("unwrap", ".to(", "dtype"), ("unwrap", "half("))

    bad = (
        Bad(
            """\
import torch
from diffusers import DiffusionPipeline

def validate(pipeline, accelerator, kind):
    pipeline = pipeline.to(accelerator.device, dtype=kind)
    return pipeline("a cat").images

def train(unet, accelerator, optimizer, loader, kind):
    for batch in loader:
        accelerator.backward(unet(batch).mean())
        optimizer.step()
        pipeline = DiffusionPipeline.from_pretrained("model", unet=accelerator.unwrap_model(unet))
        validate(pipeline, accelerator, kind)
""",
            lines=(5,),
            instead="""\
import torch
from diffusers import DiffusionPipeline

def validate(pipeline, accelerator, kind):
    pipeline = pipeline.to(accelerator.device)
    with torch.autocast(accelerator.device.type, dtype=kind):
        return pipeline("a cat").images

def train(unet, accelerator, optimizer, loader, kind):
    for batch in loader:
        accelerator.backward(unet(batch).mean())
        optimizer.step()
        pipeline = DiffusionPipeline.from_pretrained("model", unet=accelerator.unwrap_model(unet))
        validate(pipeline, accelerator, kind)
""",
        ),
        Bad(
            """\
import torch
from sampling import Sampler

def train(net, fabric, optimizer, epochs):
    for epoch in range(epochs):
        fabric.backward(net(epoch).mean())
        optimizer.step()
        sampler = Sampler(model=fabric.unwrap_model(net), steps=20)
        sampler.to(dtype=torch.float16)
        sampler.draw()
""",
            lines=(9,),
        ),
    )
    good = (
        Good(
            """\
import copy
import torch
from diffusers import DiffusionPipeline

def train(unet, accelerator, optimizer, loader):
    for batch in loader:
        optimizer.step()
        pipeline = DiffusionPipeline.from_pretrained("model", unet=accelerator.unwrap_model(unet))
        pipeline.to(accelerator.device)
        pipeline.vae.to(dtype=torch.float32)
        kept = copy.deepcopy(accelerator.unwrap_model(unet))
        other = DiffusionPipeline.from_pretrained("model", unet=kept)
        other.to(dtype=torch.float16)
    last = DiffusionPipeline.from_pretrained("model", unet=accelerator.unwrap_model(unet))
    last.to(dtype=torch.float16)
    last.save_pretrained("out")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        seen: set[ast.Call] = set()
        for shared in containers_of_trained(module):
            for cast in _casts(module, shared):
                if cast not in seen:
                    seen.add(cast)
                    yield self._found(module, cast, shared)

    def _found(self, module: Module, cast: ast.Call, shared: Shared) -> Finding:
        trained = " and ".join(f"`{module.text(each)}`" for each in shared.trained)
        return self.finding(
            module,
            cast,
            f"the call also casts {trained}, which is being trained: its weights lose their "
            "precision, or the gradient scaler refuses them at the next step",
            trail=[
                (shared.made, f"made of {trained} itself, not of a copy"),
                (shared.handed, f"`{one_line(module, shared.handed)}`" if shared.handed else ""),
                (cast, "all that it holds is cast"),
            ],
        )


def _casts(module: Module, shared: Shared) -> Iterator[ast.Call]:
    where = shared.function
    for call in module.calls("to", *_SHORT, inside=where):
        owner = receiver(call)
        named = isinstance(owner, ast.Name) and owner.id == shared.name
        if named and _in_order(module, call, shared, where) and _gives_type(module, call):
            yield call


def _in_order(module: Module, call: ast.Call, shared: Shared, where: FunctionNode | None) -> bool:
    if shared.handed is not None:
        return module.function_of(call) is where
    return any(each is call for each in in_the_same_loop(module, shared.made))


def _gives_type(module: Module, call: ast.Call) -> bool:
    if called(call) in _SHORT:
        return not call.args
    given = [keyword(call, "dtype"), keyword(call, "torch_dtype"), *call.args]
    asked = [each for each in given if each is not None]
    typed = (each for each in asked if each not in call.args or is_dtype(module, each))
    return any("float32" not in module.text(each) for each in typed)
