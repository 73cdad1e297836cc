"""`from_pretrained` knows what its files lacked and what it did not use: who uses it is added."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.unused_scales import unused_scales
from tensortrail.tracer.noticing.incomplete_loads import Load
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "transformers.modeling_utils"
SHORT = {"I8": "int8", "U8": "uint8", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
         "F8_E8M0": "float8_e8m0fnu", "F4": "float4_e2m1fn_x2"}  # fmt: skip
"""Types as safetensors writes them."""


class Kinds(threading.local):
    """The type of each key of the files that are being read."""

    of: Mapping[str, str] = {}


def install(recorder: Recorder, patches: Patches) -> None:
    import transformers.modeling_utils as library

    if hasattr(library.PreTrainedModel, "_finalize_model_loading"):  # transformers 5
        kinds = Kinds()
        patches.wrap(library, "convert_and_load_state_dict_in_model", _reading(kinds))
        around = _ending(recorder, kinds)
        patches.wrap(library.PreTrainedModel, "_finalize_model_loading", around)


def _reading(kinds: Kinds) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        given = kwargs.get("state_dict", args[1] if len(args) > 1 else {})
        kinds.of = {key: _kind(value) for key, value in given.items()}
        return original(*args, **kwargs)

    return around


def _kind(value: Any) -> str:
    """Of a tensor, or of a part of a file that is not read yet."""
    ask = getattr(value, "get_dtype", None)
    return SHORT.get(ask(), "") if ask is not None else str(getattr(value, "dtype", ""))[6:]


def _ending(recorder: Recorder, kinds: Kinds) -> Around:
    def around(original: Any, model: Any, config: Any, info: Any) -> Any:
        result = original(model, config, info)
        recorder.guarded(_ended, model, config, result, kinds.of)
        kinds.of = {}
        return result

    return around


def _ended(
    recorder: Recorder, model: Any, config: Any, info: Any, kinds: Mapping[str, str]
) -> None:
    missing = set(info.missing_and_mismatched())
    file = str(config.pretrained_model_name_or_path or "")
    given = (tensor for name, tensor in model.named_parameters() if name not in missing)
    for tensor in given:
        if (entry := recorder.storages.entry(tensor)) is not None:
            recorder.loads.gave(entry, file)
    recorder.name_module(model)
    unused = sorted(info.unexpected_keys)
    scales = {}
    if not config.is_quantized:
        taken = [key for key in kinds if key not in info.unexpected_keys]
        scales = unused_scales(unused, taken, lambda key: kinds.get(key, ""))
    load = Load("transformers.from_pretrained", model, missing, unused, file, scales)
    recorder.incomplete_loads.ended(load)
