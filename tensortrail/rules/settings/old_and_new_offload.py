from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._zero import zero_of
from tensortrail.rules.settings_file import SettingsFile, SettingsKind

OLD_NAMES = {"cpu_offload": "offload_optimizer", "cpu_offload_param": "offload_param"}


class OldAndNewOffload(Rule):
    """Offloading is set under its old name and under its new one.

    ## What it does
    Reports `cpu_offload` with `offload_optimizer`, and `cpu_offload_param` with `offload_param`.

    ## Why is this bad?
    DeepSpeed refuses the two together, whatever their values are.

    ## Fix safety
    No fix is offered: remove the old name.

    ## References
    - DeepSpeed 0.19.6: `runtime/config_utils.py`, `_process_deprecated_field`
    """

    code = "CFG910"
    name = "old-and-new-offload"
    severity = Severity.ERROR
    concerns = (SettingsKind.DEEPSPEED, SettingsKind.TRAINING)
    read_in = "DeepSpeed 0.19.6, runtime/config_utils.py, _process_deprecated_field"
    bad = (
        Bad(
            """\
{
  "zero_optimization": {
    "stage": 2,
    "cpu_offload": true,
    "offload_optimizer": {"device": "cpu"}
  }
}
""",
            lines=(4,),
            path="deepspeed.json",
            instead="""\
{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
""",
        ),
    )
    good = (
        Good(
            """\
{"zero_optimization": {"stage": 2, "cpu_offload": true}}
""",
            path="deepspeed.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        zero = zero_of(settings)
        for old, new in OLD_NAMES.items() if zero else ():
            assert zero is not None
            before, after = zero.of(old), zero.of(new)
            if before and after:
                yield self.finding_in_settings(
                    settings,
                    before,
                    f"{before.told} is the old name of `{new}`, and both together are refused",
                    f"remove `{old}`",
                )
