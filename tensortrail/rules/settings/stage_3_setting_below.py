from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._zero import ZERO_KINDS, zero_of
from tensortrail.rules.settings_file import Given, SettingsFile, is_off

ONLY_STAGE_3 = frozenset((
    "stage3_gather_16bit_weights_on_model_save", "gather_16bit_weights_on_model_save",
    "zero3_save_16bit_model", "zero3_init_flag", "zero_hpz_partition_size",
    "zero_quantized_weights", "zero_quantized_nontrainable_weights", "mics_shard_size",
))  # fmt: skip
"""Those that somebody chose to switch on. Sizes of buckets are copied with every template."""


class Stage3SettingBelow(Rule):
    """A setting of ZeRO stage 3 is used with a lower stage, which does not read it.

    ## What it does
    Reports, as a note, settings that only stage 3 reads, if the stage is 1 or 2 and the value is
    not the default: `stage3_gather_16bit_weights_on_model_save`, `zero3_init_flag`,
    `zero_hpz_partition_size`, `zero_quantized_weights`, `mics_shard_size`.

    ## Why is this bad?
    The setting has no effect, with one line in the log at most: weights are saved as they are, the
    model is not divided while it is built, no traffic is quantized.

    ## Fix safety
    No fix is offered: remove the setting, or set the stage to 3.

    ## References
    - DeepSpeed 0.19.6: `runtime/engine.py`, `_configure_zero_optimizer`
    - accelerate 1.15.0: `utils/dataclasses.py`: `DeepSpeed Zero3 Init flag is only applicable for
      ZeRO Stage 3. Setting it to False.`
    """

    code = "CFG908"
    name = "stage-3-setting-below"
    severity = Severity.NOTE
    concerns = ZERO_KINDS
    read_in = (
        "DeepSpeed 0.19.6, runtime/engine.py, _configure_zero_optimizer; "
        "accelerate 1.15.0, DeepSpeedPlugin.__post_init__"
    )
    bad = (
        Bad(
            """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  zero3_init_flag: true
""",
            lines=(4,),
            path="accelerate.yaml",
            instead="""\
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  zero3_init_flag: false
""",
        ),
        Bad(
            """\
{
  "zero_optimization": {
    "stage": 2,
    "zero_quantized_weights": true
  }
}
""",
            lines=(4,),
            path="deepspeed.json",
        ),
    )
    good = (
        Good(
            """\
distributed_type: DEEPSPEED
deepspeed_config:
  zero3_init_flag: true
  zero3_save_16bit_model: true
  zero_stage: 3
""",
            path="accelerate.yaml",
        ),
        Good(
            """\
{"zero_optimization": {"stage": 2, "stage3_max_live_parameters": 1e9}}
""",
            path="deepspeed.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        zero = zero_of(settings)
        if zero is None or zero.stage not in (1, 2):
            return
        unused = [each for each in zero.all() if _last(each) in ONLY_STAGE_3 and _matters(each)]
        if unused:
            names = ", ".join(f"`{_last(each)}`" for each in unused)
            yield self.finding_in_settings(
                settings,
                unused[0],
                f"with {zero.told}, nothing reads {names}",
                "remove it, or set the stage to 3",
            )


def _last(given: Given) -> str:
    return given.name.rpartition(".")[2]


def _matters(given: Given) -> bool:
    """It is not what it would be without the setting."""
    unset = type(given.value) is int and given.value in (1, -1)
    return not (unset or is_off(given.value) or given.value == "auto")
