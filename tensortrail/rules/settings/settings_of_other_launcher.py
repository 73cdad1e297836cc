from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings_file import SettingsFile, SettingsKind

BLOCKS = {
    "deepspeed_config": "DEEPSPEED",
    "fsdp_config": "FSDP",
    "megatron_lm_config": "MEGATRON_LM",
}


class SettingsOfOtherLauncher(Rule):
    """A block of settings belongs to another way of training than the chosen one.

    ## What it does
    Reports a filled `deepspeed_config`, `fsdp_config` or `megatron_lm_config` in a file of
    accelerate with another `distributed_type`.

    ## Why is this bad?
    Nothing is sharded or offloaded, every GPU holds the whole model, and no message says so:
    `accelerate launch` reads only the block of the chosen type.

    ## Fix safety
    No fix is offered: set `distributed_type`, or remove the block.

    ## References
    - accelerate 1.15.0: `commands/launch.py`, `_validate_launch_command` and `launch_command`
    """

    code = "CFG926"
    name = "settings-of-other-launcher"
    severity = Severity.WARNING
    concerns = (SettingsKind.ACCELERATE,)
    read_in = "accelerate 1.15.0, commands/launch.py, launch_command"
    bad = (
        Bad(
            """\
distributed_type: MULTI_GPU
fsdp_config:
  fsdp_offload_params: true
num_processes: 2
""",
            lines=(2,),
            path="accelerate.yaml",
            instead="""\
distributed_type: FSDP
fsdp_config:
  fsdp_offload_params: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
num_processes: 2
""",
        ),
    )
    good = (
        Good(
            """\
distributed_type: FSDP
deepspeed_config: {}
fsdp_config:
  fsdp_offload_params: true
num_processes: 2
""",
            path="accelerate.yaml",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        chosen = settings.given("distributed_type")
        if chosen is None or not isinstance(chosen.value, str):
            return
        for name, kind in BLOCKS.items():
            block = settings.given(name)
            filled = block is not None and isinstance(block.value, dict) and bool(block.value)
            if block and filled and chosen.value.upper() != kind:
                yield self.finding_in_settings(
                    settings,
                    block,
                    f"with {chosen.told}, nothing reads `{name}`",
                    f"set `distributed_type: {kind}`, or remove the block",
                )
