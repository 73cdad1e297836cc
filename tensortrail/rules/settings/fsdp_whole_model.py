from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._fsdp import fsdp_of
from tensortrail.rules.settings_file import SettingsFile, SettingsKind


class FsdpWholeModel(Rule):
    """FSDP wraps no layer, and gathers the whole model at once.

    ## What it does
    Reports NO_WRAP, or no policy at all, in a file of accelerate whose FSDP shards parameters.

    ## Why is this bad?
    Sharding saves memory between steps, but not during one: the parameters are a single unit, which
    the first layer gathers and which stays until the last one has run.

    ## Fix safety
    No fix is offered: TRANSFORMER_BASED_WRAP wraps the layers of most models. A script may also
    wrap them itself.

    ## References
    - accelerate 1.15.0: `utils/dataclasses.py`: `NO_WRAP` is the default
    - https://docs.pytorch.org/docs/stable/fsdp.html
    """

    code = "CFG924"
    name = "fsdp-whole-model"
    severity = Severity.NOTE
    concerns = (SettingsKind.ACCELERATE,)
    read_in = (
        "accelerate 1.15.0, utils/dataclasses.py, FullyShardedDataParallelPlugin.__post_init__"
    )
    bad = (
        Bad(
            """\
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: NO_WRAP
num_processes: 2
""",
            lines=(3,),
            path="accelerate.yaml",
            instead="""\
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
num_processes: 2
""",
        ),
    )
    good = (
        Good(
            """\
distributed_type: FSDP
fsdp_config:
  fsdp_sharding_strategy: NO_SHARD
num_processes: 2
""",
            path="accelerate.yaml",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        fsdp = fsdp_of(settings)
        if fsdp is None:
            return
        policy, strategy = fsdp.of("auto_wrap_policy"), fsdp.of("sharding_strategy")
        if strategy and str(strategy.value).upper() in ("NO_SHARD", "3"):
            return
        at = policy or settings.given("fsdp_config")
        if at and (policy is None or str(policy.value).upper() == "NO_WRAP"):
            told = policy.told if policy else "without `fsdp_auto_wrap_policy`"
            yield self.finding_in_settings(
                settings,
                at._replace(line=at.line),
                f"{told}, the whole model is one unit, and all of it is gathered at once",
                "set `fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP`",
            )
