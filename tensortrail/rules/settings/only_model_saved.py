from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._fsdp import fsdp_of
from tensortrail.rules.settings_file import SettingsFile, SettingsKind, is_on


class OnlyModelSaved(Rule):
    """Checkpoints hold only the model, but something else needs more than that.

    ## What it does
    Reports `save_only_model` with `load_best_model_at_end` under DeepSpeed or FSDP, and with a
    SHARDED_STATE_DICT of FSDP.

    ## Why is this bad?
    The Trainer refuses to start: it could not rebuild the sharded model from such a checkpoint.

    ## Fix safety
    No fix is offered: switch `save_only_model` off, or save a FULL_STATE_DICT.

    ## References
    - transformers 5.23.0: `trainer.py`, `create_accelerator_and_postprocess`
    """

    code = "CFG942"
    name = "only-model-saved"
    severity = Severity.ERROR
    concerns = (SettingsKind.TRAINING,)
    read_in = "transformers 5.23.0, trainer.py, create_accelerator_and_postprocess"
    bad = (
        Bad(
            """\
{
  "output_dir": "out",
  "eval_strategy": "epoch",
  "save_strategy": "epoch",
  "deepspeed": "zero3.json",
  "save_only_model": true,
  "load_best_model_at_end": true
}
""",
            lines=(6,),
            path="arguments.json",
            instead="""\
{
  "output_dir": "out",
  "eval_strategy": "epoch",
  "save_strategy": "epoch",
  "deepspeed": "zero3.json",
  "load_best_model_at_end": true
}
""",
        ),
    )
    good = (
        Good(
            """\
{
  "output_dir": "out",
  "eval_strategy": "epoch",
  "save_strategy": "epoch",
  "save_only_model": true,
  "load_best_model_at_end": true
}
""",
            path="arguments.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        only, best = settings.given("save_only_model"), settings.given("load_best_model_at_end")
        sharded = settings.given("deepspeed") or settings.given("fsdp")
        if only is None or not is_on(only.value) or sharded is None or not sharded.value:
            return
        fsdp = fsdp_of(settings)
        form = fsdp.of("state_dict_type") if fsdp else None
        if best and is_on(best.value):
            yield self.finding_in_settings(
                settings,
                only,
                f"{only.told} is refused together with {best.told} and `{sharded.name}`",
                "switch one of the two off",
            )
        elif form and "SHARDED" in str(form.value).upper():
            yield self.finding_in_settings(
                settings,
                only,
                f"{only.told} is refused together with {form.told}",
                "save a FULL_STATE_DICT, or switch `save_only_model` off",
            )
