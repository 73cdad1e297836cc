"""Inferred places beside where the tensors of rehearsed runs really were, name by name.

    python benchmarks/places_agree.py [--only WORD] [--seconds N] [--show]

Each model is built from a tiny configuration, moved to a simulated GPU and called once. Whenever
a line of its file has given a name to a tensor, the device is compared with the place that was
inferred for that name at that line. An inference of several places agrees if one of them does.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from tensortrail.analyzer.module import PythonModule, open_project
from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

TINY = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "intermediate_size": 48,
    "d_ff": 48, "ffn_dim": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "n_inner": 48,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2,
    "decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 4,
    "vocab_size": 99, "max_position_embeddings": 64, "n_positions": 64, "head_dim": 8,
    "image_size": 32, "patch_size": 16, "num_local_experts": 2, "num_experts": 2, "d_kv": 8,
    "embedding_size": 32, "pad_token_id": 0, "rotary_dim": 8, "num_decoder_layers": 2,
}  # fmt: skip
TYPES = (
    "albert bart bert big_bird biogpt blenderbot bloom codegen convbert cohere ctrl deberta "
    "deberta-v2 deit dinov2 distilbert electra ernie falcon flaubert fnet gemma gemma2 "
    "gemma3_text glm gpt2 gpt_bigcode gpt_neo gpt_neox gptj granite helium hubert ijepa "
    "layoutlm led lilt llama longformer m2m_100 mamba marian mbart megatron-bert mistral "
    "mixtral mobilebert modernbert mpnet mpt mt5 mvp nezha nystromformer olmo olmo2 "
    "openai-gpt opt pegasus persimmon phi phi3 plbart prophetnet qwen2 qwen2_moe qwen3 "
    "rembert roberta roberta-prelayernorm roc_bert roformer rwkv squeezebert stablelm "
    "starcoder2 t5 umt5 vit vit_mae vit_msn xglm xlm xlm-roberta xlnet xmod yolos yoso"
).split()


class Tally:
    """Counts of one run; what was inferred is asked file by file."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.functions: set[str] = set()
        self._project = open_project()
        self._files: dict[str, dict[int, list[tuple[str, Held]]]] = {}

    def inferred(self, path: str) -> dict[int, list[tuple[str, Held]]]:
        """By line, the names it binds and what is believed of them."""
        if path not in self._files:
            module = PythonModule(path, Path(path).read_bytes(), self._project)
            by_line: dict[int, list[tuple[str, Held]]] = {}
            for function in module.nodes(ast.FunctionDef):
                if module.tree.outermost_function_of(function) is not function:
                    continue
                for node, held in module.places(function).seen.items():
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        by_line.setdefault(node.lineno, []).append((node.id, held))
            self._files[path] = by_line
        return self._files[path]

    def traced(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(self.folder) or "modeling_" not in path:
            return None
        self.functions.add(f"{path}:{frame.f_code.co_firstlineno}")
        given = {name: where_is(each) for name, each in frame.f_locals.items()}
        given["self"] = where_module_is(frame.f_locals.get("self"))
        last = frame.f_lineno

        def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            nonlocal last
            for name, held in self.inferred(path).get(last, ()):
                device = where_is(frame.f_locals.get(name))
                if isinstance(frame.f_locals.get(name), torch.Tensor) and event != "exception":
                    self.compare(f"{path}:{last}: {name}", held, device, given)
            last = frame.f_lineno
            return line

        return line

    def compare(self, what: str, held: Held, device: str, given: dict[str, str]) -> None:
        if held.what is not What.TENSOR or not held.places:
            self.counts["unknown"] += 1
            return
        expected = {expectation(each, given) for each in held.places}
        if "" in expected and device not in expected:
            self.counts["unknown"] += 1
        elif device in expected:
            self.counts["agrees"] += 1
        else:
            self.counts["disagrees"] += 1
            said = " or ".join(each.text for each in held.in_order)
            self.wrong[f"{what} is on {device}, inferred {said}"] += 1


def expectation(place: Place, given: dict[str, str]) -> str:
    """The device a place stands for in this call; "" if that cannot be said."""
    if place.where in (Where.DEFAULT, Where.HOST, Where.STAYS):
        return "cpu"
    if place.where is Where.SELF:
        return given["self"]
    if place.where is Where.LITERAL:
        return place.subject
    if place.where in (Where.OF, Where.DEVICE):
        return given.get(place.subject, "")
    return ""


def where_is(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return str(value.device.type)
    return value.type if isinstance(value, torch.device) else ""


def where_module_is(module: object) -> str:
    if not isinstance(module, torch.nn.Module):
        return ""
    tensors = [*module.parameters(), *module.buffers()]
    return where_is(tensors[0]) if tensors else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="model types that contain this word")
    parser.add_argument("--seconds", type=float, default=3600, help="start no model after these")
    parser.add_argument("--show", action="store_true", help="print each disagreement")
    options = parser.parse_args()
    import transformers

    tally = Tally(str(Path(transformers.__file__).parent))
    ran: list[str] = []
    end = time.monotonic() + options.seconds
    for name in (each for each in TYPES if options.only in each):
        if time.monotonic() > end:
            break
        before = sum(tally.counts.values())
        try:
            run(name, tally)
        except Exception as error:  # a tiny configuration does not fit every model
            print(f"{name}: {type(error).__name__}: {str(error)[:90]}", file=sys.stderr)
        if sum(tally.counts.values()) > before:
            ran.append(name)
    counts, known = tally.counts, tally.counts["agrees"] + tally.counts["disagrees"]
    print(f"{len(ran)} models, {len(tally.functions)} functions ran")
    print(f"known {known} of {sum(counts.values())} ({100 * known / sum(counts.values()):.1f} %)")
    print(f"agree {counts['agrees']} of the known ({100 * counts['agrees'] / known:.2f} %)")
    if options.show:
        for said, count in tally.wrong.most_common():
            print(f"{count:5} {said}")


def run(name: str, tally: Tally) -> None:
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(0)
    known = inspect.signature(type(AutoConfig.for_model(name)).__init__).parameters
    fields = AutoConfig.for_model(name).to_dict().keys() | known.keys()
    config = AutoConfig.for_model(name, **{k: v for k, v in TINY.items() if k in fields})
    with Rehearsal(parse_spec("cuda")):
        model = AutoModel.from_config(config).eval().to("cuda")
        inputs = inputs_of(model)
        sys.settrace(tally.traced)
        try:
            with torch.no_grad():
                model(**{key: value.to("cuda") for key, value in inputs.items()})
        finally:
            sys.settrace(None)


def inputs_of(model: Any) -> dict[str, torch.Tensor]:
    wanted = inspect.signature(model.forward).parameters
    if "pixel_values" in wanted and "input_ids" not in wanted:
        return {"pixel_values": torch.rand(1, 3, 32, 32)}
    if "input_values" in wanted and "input_ids" not in wanted:
        return {"input_values": torch.rand(1, 4000)}
    ids = torch.randint(3, 90, (2, 16))
    found = {"input_ids": ids}
    if "attention_mask" in wanted:
        found["attention_mask"] = torch.ones_like(ids)
    if "decoder_input_ids" in wanted:
        found["decoder_input_ids"] = ids[:, :8]
    return found


if __name__ == "__main__":
    main()
