from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._zero import zero_of
from tensortrail.rules.settings_file import SettingsFile, SettingsKind, is_on


class PartialOffloadBelowStage3(Rule):
    """A part of the optimizer should be offloaded, which only ZeRO stage 3 supports.

    ## What it does
    Reports `offload_optimizer.ratio` below 1, and `super_offload`, at a ZeRO stage below 3.

    ## Why is this bad?
    DeepSpeed refuses a ratio below 1 when it reads its settings. Only stage 3 reads
    `super_offload`.

    ## Fix safety
    No fix is offered: set the stage to 3, or remove the setting.

    ## References
    - DeepSpeed 0.19.6: `runtime/zero/config.py`, `offload_ratio_check`
    - DeepSpeed 0.19.6: `runtime/engine.py`, `super_offload`
    """

    code = "CFG907"
    name = "partial-offload-below-stage-3"
    severity = Severity.ERROR
    concerns = (SettingsKind.DEEPSPEED, SettingsKind.TRAINING)
    read_in = "DeepSpeed 0.19.6, runtime/zero/config.py, offload_ratio_check"
    bad = (
        Bad(
            """\
{
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {
      "device": "cpu",
      "ratio": 0.5
    }
  }
}
""",
            lines=(6,),
            path="deepspeed.json",
            instead="""\
{
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {
      "device": "cpu",
      "ratio": 0.5
    }
  }
}
""",
        ),
    )
    good = (
        Good(
            """\
{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 1.0}}}
""",
            path="deepspeed.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        zero = zero_of(settings)
        if zero is None or zero.stage == 3:
            return
        ratio, whole = (
            zero.of("offload_optimizer.ratio"),
            zero.of("offload_optimizer.super_offload"),
        )
        if ratio and isinstance(ratio.value, (int, float)) and ratio.value < 1:
            yield self.finding_in_settings(
                settings,
                ratio,
                f"{ratio.told} is refused with {zero.told}",
                "set the stage to 3, or remove the ratio",
            )
        if whole and is_on(whole.value):
            yield self.finding_in_settings(
                settings,
                whole,
                f"{whole.told} does nothing with {zero.told}",
                "set the stage to 3, or remove it",
                severity=Severity.WARNING,
            )
