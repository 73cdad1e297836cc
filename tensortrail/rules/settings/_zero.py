"""ZeRO's settings by their names in DeepSpeed, wherever a file keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from tensortrail.rules.settings_file import Given, Path, SettingsFile, SettingsKind
from tensortrail.rules.unchanging import unchanging

ZERO_KINDS = (SettingsKind.DEEPSPEED, SettingsKind.ACCELERATE, SettingsKind.TRAINING)
_IN_ACCELERATE = {
    "stage": "zero_stage",
    "offload_optimizer.device": "offload_optimizer_device",
    "offload_optimizer.nvme_path": "offload_optimizer_nvme_path",
    "offload_param.device": "offload_param_device",
    "offload_param.nvme_path": "offload_param_nvme_path",
    "stage3_gather_16bit_weights_on_model_save": "zero3_save_16bit_model",
}
"""What accelerate calls the settings that it passes on (accelerate 1.15.0, DeepSpeedPlugin)."""
DEFAULT_IN_ACCELERATE, DEFAULT = 2, 0


@unchanging(frozen=True, slots=False)
class Zero:
    """The ZeRO settings of one file."""

    file: SettingsFile
    stage: int
    told: str
    """The stage as a message gives it."""
    block: Path

    def of(self, name: str) -> Given | None:
        """The setting by its dotted name in `zero_optimization`; "auto" and "none" are none."""
        if self.file.kind is SettingsKind.ACCELERATE:
            called = _IN_ACCELERATE.get(name)
            found = self.file.given(*self.block, called) if called else None
        else:
            found = self.file.given(*self.block, *name.split("."))
        return None if found is None or str(found.value).lower() in ("auto", "none") else found

    def all(self) -> Iterator[Given]:
        return self.file.below(*self.block)


def zero_of(file: SettingsFile) -> Zero | None:
    """None if the file sets up no ZeRO, or leaves the stage to another place."""
    block: Path = ("zero_optimization",)
    name, default = "stage", DEFAULT
    if file.kind is SettingsKind.TRAINING:
        block = ("deepspeed", "zero_optimization")
    elif file.kind is SettingsKind.ACCELERATE:
        if not uses_deepspeed(file) or file.given("deepspeed_config", "deepspeed_config_file"):
            return None
        block, name, default = ("deepspeed_config",), "zero_stage", DEFAULT_IN_ACCELERATE
    given = file.given(*block)
    if given is None or not isinstance(given.value, dict):
        return None
    stage = file.given(*block, name)
    if stage is None:
        return Zero(file, default, f"stage {default}, the default", block)
    text = str(stage.value)
    return Zero(file, int(text), stage.told, block) if text in ("0", "1", "2", "3") else None


def uses_deepspeed(file: SettingsFile) -> bool:
    kind = file.given("distributed_type")
    return kind is not None and str(kind.value).upper() == "DEEPSPEED"


def device_of(zero: Zero, what: str) -> Given | None:
    """Where `offload_param` or `offload_optimizer` goes to: cpu or nvme; None for nowhere."""
    found = zero.of(f"{what}.device")
    return found if found and str(found.value).lower() in ("cpu", "nvme") else None
