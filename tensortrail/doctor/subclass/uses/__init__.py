"""What a wrapper subclass is used for, one file a use: `USE` names it, `PROBES` are what it asks
of a tensor. Found by being here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence

from tensortrail.doctor.subclass.probe import Probe


def all_uses() -> Mapping[str, Sequence[Probe]]:
    names = [file.name for file in pkgutil.iter_modules(__path__)]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names if name[0] != "_"]
    modules.sort(key=lambda module: int(module.ORDER))
    return {str(module.USE): module.PROBES for module in modules}
