"""A weight that is sharded over one mesh, and is to be sharded over another one."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import calls_above, told

SAYS = "Cannot distribute a DTensor with device mesh"
SHARDS, PARTS = "fully_shard", "parallelize_module"


def meshes_apart(error: BaseException, _: Storages) -> dict[str, Any] | None:
    """Where the program's function that runs has both calls, the wrong one first."""
    if not isinstance(error, ValueError) or SAYS not in str(error):
        return None
    for frame, line in walk_tb(error.__traceback__):
        shards, parts = (list(calls_above(frame, line + 1, name)) for name in (SHARDS, PARTS))
        if shards and parts and shards[0][0].lineno < parts[-1][0].lineno:
            return told(
                f"`{SHARDS}`{shards[0][1]} has sharded the weights before `{PARTS}`{parts[-1][1]} "
                "makes the layers tensor parallel, which shards them over another mesh",
                f"call `{PARTS}` first and `{SHARDS}` after it",
            )
    return None
