"""How code writes states into files, and how it takes the name of a wrapper out of their keys."""

from __future__ import annotations

WRITERS = ("save", "save_file", "safe_save_file", "save_model")
UNWRAPS = ("unwrap", "extract_model", "removeprefix", "replace", "consume_prefix", "_orig_mod")
