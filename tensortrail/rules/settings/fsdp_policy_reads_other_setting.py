from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._fsdp import FSDP_KINDS, fsdp_of
from tensortrail.rules.settings_file import SettingsFile

READERS = {
    "transformer_layer_cls_to_wrap": "TRANSFORMER_BASED_WRAP",
    "min_num_params": "SIZE_BASED_WRAP",
}
UNSET = ("0", "100000000", "none", "None")
"""What stands for no value, and the default of `accelerate launch`."""


class FsdpPolicyReadsOtherSetting(Rule):
    """The layers that FSDP should wrap are set for a policy that does not read them.

    ## What it does
    Reports the classes of layers to wrap with a policy other than TRANSFORMER_BASED_WRAP, and a
    number of parameters with one other than SIZE_BASED_WRAP.

    ## Why is this bad?
    The whole model is gathered at once, and needs the memory that sharding should save: each policy
    reads only its own setting, so the layers are not wrapped one by one.

    ## Fix safety
    No fix is offered: name the policy that reads the setting.

    ## References
    - accelerate 1.15.0: `utils/dataclasses.py`, `set_auto_wrap_policy`
    - transformers 5.23.0: `training_args.py`, `_process_fsdp_args`
    """

    code = "CFG923"
    name = "fsdp-policy-reads-other-setting"
    severity = Severity.WARNING
    concerns = FSDP_KINDS
    read_in = "accelerate 1.15.0, utils/dataclasses.py, FullyShardedDataParallelPlugin"
    bad = (
        Bad(
            """\
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: SIZE_BASED_WRAP
  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer
num_processes: 2
""",
            lines=(4,),
            path="accelerate.yaml",
            instead="""\
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer
num_processes: 2
""",
        ),
        Bad(
            """\
distributed_type: FSDP
fsdp_config:
  fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer
num_processes: 2
""",
            lines=(3,),
            path="accelerate.yaml",
        ),
    )
    good = (
        Good(
            """\
distributed_type: FSDP
fsdp_config:
  fsdp_auto_wrap_policy: SIZE_BASED_WRAP
  fsdp_min_num_params: 2000
num_processes: 2
""",
            path="accelerate.yaml",
        ),
        Good(
            """\
{"fsdp_transformer_layer_cls_to_wrap": ["BertLayer"], "fsdp_use_orig_params": true}
""",
            path="fsdp.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        fsdp = fsdp_of(settings)
        policy = fsdp.of("auto_wrap_policy") if fsdp else None
        chosen = str(policy.value).upper() if policy else "NO_WRAP"
        if fsdp is None or (policy is None and not fsdp.of_accelerate):
            return
        for name, reader in READERS.items():
            given = fsdp.of(name)
            if given and given.value and chosen != reader and str(given.value) not in UNSET:
                told = policy.told if policy else "no policy"
                yield self.finding_in_settings(
                    settings,
                    given,
                    f"with {told}, nothing reads `{given.name}`",
                    f"set the policy to {reader}, or remove it",
                )
