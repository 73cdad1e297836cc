from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._zero import uses_deepspeed
from tensortrail.rules.settings_file import SettingsFile, SettingsKind

BELONG_THERE = (
    "gradient_accumulation_steps", "gradient_clipping", "zero_stage", "offload_optimizer_device",
    "offload_param_device", "offload_param_nvme_path", "offload_optimizer_nvme_path",
    "zero3_save_16bit_model", "mixed_precision",
)  # fmt: skip


class DeepspeedFileAndSettings(Rule):
    """Settings are in the file of accelerate, though it names a DeepSpeed file for them.

    ## What it does
    Reports settings of ZeRO, and `mixed_precision`, in a file of accelerate that names a
    `deepspeed_config_file`.

    ## Why is this bad?
    accelerate stops with an error that lists these names: with a DeepSpeed file, they belong there.

    ## Fix safety
    No fix is offered: move the values into the DeepSpeed file.

    ## References
    - accelerate 1.15.0: `utils/dataclasses.py`, `_deepspeed_config_checks`
    - https://huggingface.co/docs/accelerate/usage_guides/deepspeed
    """

    code = "CFG914"
    name = "deepspeed-file-and-settings"
    severity = Severity.ERROR
    concerns = (SettingsKind.ACCELERATE,)
    read_in = "accelerate 1.15.0, utils/dataclasses.py, _deepspeed_config_checks"
    bad = (
        Bad(
            """\
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: zero3.json
  zero3_init_flag: true
  zero_stage: 3
num_processes: 2
""",
            lines=(5,),
            path="accelerate.yaml",
            instead="""\
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: zero3.json
  zero3_init_flag: true
num_processes: 2
""",
        ),
        Bad(
            """\
distributed_type: DEEPSPEED
deepspeed_config:
  deepspeed_config_file: zero3.json
mixed_precision: bf16
num_processes: 2
""",
            lines=(4,),
            path="accelerate.yaml",
        ),
    )
    good = (
        Good(
            """\
distributed_type: DEEPSPEED
deepspeed_config:
  gradient_accumulation_steps: 1
  zero_stage: 3
mixed_precision: bf16
num_processes: 2
""",
            path="accelerate.yaml",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        if not uses_deepspeed(settings):
            return
        if not settings.given("deepspeed_config", "deepspeed_config_file"):
            return
        both = [each for name in BELONG_THERE if (each := settings.given("deepspeed_config", name))]
        if precision := settings.given("mixed_precision"):
            both.append(precision)
        if both:
            names = ", ".join(f"`{each.name.rpartition('.')[2]}`" for each in both)
            yield self.finding_in_settings(
                settings,
                min(both, key=lambda each: each.line),
                f"with a `deepspeed_config_file`, accelerate refuses {names}",
                "remove them here, and set them in the DeepSpeed file",
            )
