"""Models of transformers on meta: by their configuration, or as the loader makes them of stored
names and shapes. No weight is read, and the library prints nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from typing import Any


class NoModel(Exception):
    """There is no model to build: why."""


def need_transformers() -> None:
    if find_spec("transformers") is None or find_spec("torch") is None:
        raise NoModel("transformers is not installed here")


def settings_of(config: str) -> Any:
    """The configuration of a folder or file."""
    need_transformers()
    from tensortrail.doctor import configuration

    try:
        return configuration.settings_of(config)
    except configuration.NoConfiguration as error:
        raise NoModel(str(error)) from error


def unquantized(config: str) -> Any:
    """The configuration, if its names and shapes do not depend on a quantizer."""
    settings = settings_of(config)
    if getattr(settings, "quantization_config", None):
        raise NoModel("the weights are quantized, and their names depend on the quantizer")
    return settings


def class_of(settings: Any) -> Any:
    import transformers

    for name in getattr(settings, "architectures", None) or ():
        kind = getattr(transformers, name, None) if isinstance(name, str) else None
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind
    told = getattr(settings, "architectures", None) or "nothing"
    raise NoModel(
        "the configuration names no class of transformers in `architectures`, which has "
        f"{told}: write the class there that saved the weights, as in "
        '`"architectures": ["LlamaForCausalLM"]`'
    )


def loaded(settings: Any, tensors: Mapping[str, Any]) -> tuple[Any, Any]:
    """The model as the library's own loader makes it of tensors without values, and what the
    loader says of them."""
    kind = class_of(settings)
    try:
        model, told = kind.from_pretrained(
            None,
            config=settings,
            state_dict=dict(tensors),
            device_map="meta",
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    except Exception as error:  # whatever the model class does with such a configuration
        raise NoModel(f"{kind.__name__} cannot be built: {first_line(error)}") from error
    return model, told


def made(settings: Any) -> Any:
    """The model as its class makes it, without stored weights."""
    import torch

    kind = class_of(settings)
    try:
        with torch.device("meta"):
            return kind._from_config(settings)
    except Exception as error:
        raise NoModel(f"{kind.__name__} cannot be built: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


@contextmanager
def quietly() -> Iterator[None]:
    """What the library logs and draws is not part of the report."""
    if find_spec("transformers") is None:
        yield
        return
    from transformers.utils import logging as library

    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    before = library.get_verbosity()
    bars = library.is_progress_bar_enabled()
    library.set_verbosity(logging.CRITICAL)
    library.disable_progress_bar()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        logging.disable(disabled)
        library.set_verbosity(before)
        if bars:
            library.enable_progress_bar()
