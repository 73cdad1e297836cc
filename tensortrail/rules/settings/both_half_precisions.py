from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings_file import SettingsFile, SettingsKind, is_on

PAIRS = {
    SettingsKind.DEEPSPEED: ((("fp16", "enabled"), ("bf16", "enabled")),),
    SettingsKind.TRAINING: (
        (("fp16",), ("bf16",)),
        (("fp16_full_eval",), ("bf16_full_eval",)),
        (("deepspeed", "fp16", "enabled"), ("deepspeed", "bf16", "enabled")),
    ),
}


class BothHalfPrecisions(Rule):
    """fp16 and bf16 are both switched on.

    ## What it does
    Reports `fp16` together with `bf16`, in the settings of DeepSpeed and in the arguments of the
    Trainer.

    ## Why is this bad?
    Both libraries refuse to start.

    ## Fix safety
    No fix is offered: choose one.

    ## References
    - DeepSpeed 0.19.6: `runtime/config.py`, `DeepSpeedConfig._initialize_params`
    - transformers 5.23.0: `training_args.py`, `_validate_args`
    """

    code = "CFG912"
    name = "both-half-precisions"
    severity = Severity.ERROR
    concerns = (SettingsKind.DEEPSPEED, SettingsKind.TRAINING)
    read_in = (
        "DeepSpeed 0.19.6, runtime/config.py; transformers 5.23.0, training_args.py, _validate_args"
    )
    bad = (
        Bad(
            """\
{
  "fp16": {"enabled": true},
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2}
}
""",
            lines=(3,),
            path="deepspeed.json",
            instead="""\
{
  "fp16": {"enabled": false},
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 2}
}
""",
        ),
    )
    good = (
        Good(
            """\
{
  "fp16": {"enabled": "auto"},
  "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 2}
}
""",
            path="deepspeed.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        for one, other in PAIRS[settings.kind]:
            first, second = settings.given(*one), settings.given(*other)
            if first and second and is_on(first.value) and is_on(second.value):
                yield self.finding_in_settings(
                    settings,
                    max(first, second, key=lambda each: each.line),
                    f"{first.told} and {second.told} are refused together",
                    "switch one of the two off",
                )
