"""FSDP's settings by one name, wherever a file keeps them."""

from __future__ import annotations

from tensortrail.rules.settings_file import Given, Path, SettingsFile, SettingsKind
from tensortrail.rules.unchanging import unchanging

FSDP_KINDS = (SettingsKind.ACCELERATE, SettingsKind.TRAINING, SettingsKind.FSDP)
_PREFIX = "fsdp_"


@unchanging(frozen=True, slots=False)
class Fsdp:
    """The FSDP settings of one file."""

    file: SettingsFile
    block: Path
    version: int
    """0 if the file does not say, and the default differs between releases."""

    def of(self, name: str) -> Given | None:
        """The setting by its name without `fsdp_`, which both libraries add and take away."""
        found = self.file.given(*self.block, _PREFIX + name)
        return found or self.file.given(*self.block, name)

    @property
    def of_accelerate(self) -> bool:
        return self.file.kind is SettingsKind.ACCELERATE


def fsdp_of(file: SettingsFile) -> Fsdp | None:
    """None if the file sets up no FSDP."""
    if file.kind is SettingsKind.ACCELERATE:
        if not uses_fsdp(file) or not file.given("fsdp_config"):
            return None
        return _versioned(Fsdp(file, ("fsdp_config",), 1))
    if file.kind is SettingsKind.FSDP:
        return _versioned(Fsdp(file, (), 0))
    switch, block = file.given("fsdp"), file.given("fsdp_config")
    if switch is None or not switch.value or block is None or not isinstance(block.value, dict):
        return None
    return _versioned(Fsdp(file, ("fsdp_config",), 0))


def uses_fsdp(file: SettingsFile) -> bool:
    kind = file.given("distributed_type")
    return kind is not None and str(kind.value).upper() == "FSDP"


def _versioned(found: Fsdp) -> Fsdp:
    said = found.of("version")
    if said is None:
        return found
    version = int(str(said.value)) if str(said.value) in ("1", "2") else 0
    return Fsdp(found.file, found.block, version)
