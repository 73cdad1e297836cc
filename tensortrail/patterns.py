"""Regular expressions that are compiled when they are first used: a check of a few files uses few
of those that it imports, and compiling the others takes longer than importing them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

__all__ = ["pattern"]

if TYPE_CHECKING:
    pattern = re.compile
else:

    class _Pattern:
        """Its methods are those of the compiled one from the second use on."""

        def __init__(self, *written):
            self._written = written

        def __getattr__(self, name):
            found = getattr(re.compile(*self._written), name)
            setattr(self, name, found)
            return found

    def pattern(text, flags=0):
        """A constant of a module, to be used as what `re.compile` gives."""
        return _Pattern(text, flags)
