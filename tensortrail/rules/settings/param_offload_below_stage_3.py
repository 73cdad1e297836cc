from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._zero import ZERO_KINDS, device_of, zero_of
from tensortrail.rules.settings_file import SettingsFile

PARTED = 3
"""The first stage that divides parameters."""


class ParamOffloadBelowStage3(Rule):
    """Parameters should be offloaded, but the ZeRO stage keeps all of them on every GPU.

    ## What it does
    Reports `offload_param` (`offload_param_device` in accelerate) to cpu or nvme at a ZeRO
    stage below 3.

    ## Why is this bad?
    The model does not fit: the optimizers of stages 1 and 2 never get `offload_param`, so all
    parameters stay on every GPU.

    ## Fix safety
    No fix is offered: stage 3 shards the parameters and costs communication.

    ## References
    - DeepSpeed 0.19.6: `runtime/engine.py`, `_configure_zero_optimizer`
    - https://www.deepspeed.ai/docs/config-json/#parameter-offloading
    """

    code = "CFG903"
    name = "param-offload-below-stage-3"
    severity = Severity.WARNING
    concerns = ZERO_KINDS
    read_in = "DeepSpeed 0.19.6, runtime/engine.py, _configure_zero_optimizer"
    bad = (
        Bad(
            """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  offload_param_device: cpu
""",
            lines=(5,),
            path="accelerate.yaml",
            instead="""\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 3
  offload_param_device: cpu
""",
        ),
        Bad(
            """\
{
  "zero_optimization": {
    "stage": 2,
    "offload_param": {
      "device": "nvme", "nvme_path": "/nvme"
    }
  }
}
""",
            lines=(5,),
            path="deepspeed.json",
        ),
    )
    good = (
        Good(
            """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  zero_stage: 2
  offload_param_device: none
""",
            path="accelerate.yaml",
        ),
        Good(
            """\
{"zero_optimization": {"stage": "auto", "offload_param": {"device": "cpu"}}}
""",
            path="deepspeed.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        zero = zero_of(settings)
        device = device_of(zero, "offload_param") if zero and zero.stage < PARTED else None
        if zero and device:
            yield self.finding_in_settings(
                settings,
                device,
                f"{device.told} does nothing with {zero.told}: the parameters stay on every GPU",
                "set the stage to 3, or remove the offloading of parameters",
            )
