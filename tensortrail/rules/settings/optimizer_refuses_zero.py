from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._zero import zero_of
from tensortrail.rules.settings_file import SettingsFile, SettingsKind

WITHOUT_ZERO = frozenset(("onebitadam", "zerooneadam", "onebitlamb"))


class OptimizerRefusesZero(Rule):
    """The optimizer cannot run with ZeRO, or refuses one of its parameters.

    ## What it does
    Reports the 1-bit optimizers and 0/1 Adam at a ZeRO stage above 0, and `max_grad_norm` in the
    parameters of the optimizer.

    ## Why is this bad?
    DeepSpeed raises when it builds the optimizer, after the model was loaded.

    ## Fix safety
    No fix is offered: use another optimizer, or `gradient_clipping` at the top of the file.

    ## References
    - DeepSpeed 0.19.6: `runtime/engine.py`, `_configure_basic_optimizer`
    """

    code = "CFG913"
    name = "optimizer-refuses-zero"
    severity = Severity.ERROR
    concerns = (SettingsKind.DEEPSPEED,)
    read_in = "DeepSpeed 0.19.6, runtime/engine.py, _configure_basic_optimizer"
    bad = (
        Bad(
            """\
{
  "optimizer": {
    "type": "OneBitAdam",
    "params": {"lr": 1e-4}
  },
  "zero_optimization": {"stage": 1}
}
""",
            lines=(3,),
            path="deepspeed.json",
            instead="""\
{
  "optimizer": {
    "type": "AdamW",
    "params": {"lr": 1e-4}
  },
  "zero_optimization": {"stage": 1}
}
""",
        ),
    )
    good = (
        Good(
            """\
{
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-4}},
  "gradient_clipping": 1.0,
  "zero_optimization": {"stage": 0}
}
""",
            path="deepspeed.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        zero, kind = zero_of(settings), settings.given("optimizer", "type")
        if zero and zero.stage and kind and str(kind.value).lower() in WITHOUT_ZERO:
            yield self.finding_in_settings(
                settings,
                kind,
                f"{kind.told} is refused with {zero.told}",
                "set the stage to 0, or take Adam or AdamW",
            )
        if norm := settings.given("optimizer", "params", "max_grad_norm"):
            yield self.finding_in_settings(
                settings,
                norm,
                f"{norm.told} is refused as a parameter of the optimizer",
                "move it to `gradient_clipping`, at the top of the file",
            )
