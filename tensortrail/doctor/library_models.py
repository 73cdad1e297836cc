"""Models of transformers by their configuration, without weights and without a word from it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.util import find_spec
from typing import Any


class NoModel(Exception):
    """There is no model to build: why."""


def settings_of(config: str) -> Any:
    """The configuration of a folder or file. Code of the checkpoint is never run."""
    if find_spec("transformers") is None or find_spec("torch") is None:
        raise NoModel("transformers is not installed here")
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(config, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError) as error:
        told = str(error).strip().partition("\n")[0]
        raise NoModel(f"there is no configuration that transformers knows: {told}") from error


def class_of(settings: Any) -> Any:
    import transformers

    for name in getattr(settings, "architectures", None) or ():
        kind = getattr(transformers, name, None) if isinstance(name, str) else None
        if isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel):
            return kind
    raise NoModel("the configuration names no class of transformers in `architectures`")


@contextmanager
def quietly() -> Iterator[None]:
    """What the library logs and draws is not part of the report."""
    if find_spec("transformers") is None:
        yield
        return
    from transformers.utils import logging as library

    before = library.get_verbosity()
    bars = library.is_progress_bar_enabled()
    library.set_verbosity(logging.CRITICAL)
    library.disable_progress_bar()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        library.set_verbosity(before)
        if bars:
            library.enable_progress_bar()
