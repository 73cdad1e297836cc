from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings._zero import ZERO_KINDS, device_of, zero_of
from tensortrail.rules.settings_file import SettingsFile


class OptimizerOffloadWithoutZero(Rule):
    """The optimizer should be offloaded, but ZeRO is switched off.

    ## What it does
    Reports `offload_optimizer` to cpu or nvme at ZeRO stage 0.

    ## Why is this bad?
    The states of the optimizer stay on the GPU: only the optimizers of ZeRO move them. With
    DeepSpeed's own Adam, the engine still picks the one for CPUs, whose first step raises on
    parameters of a GPU.

    ## Fix safety
    No fix is offered: stage 1 or 2 offloads the optimizer, at the cost of transfers.

    ## References
    - DeepSpeed 0.19.6: `runtime/engine.py`, `zero_use_cpu_optimizer`
    - DeepSpeed 0.19.6: `ops/adam/cpu_adam.py`: `CPUAdam param is on ... and must be 'cpu'`
    """

    code = "CFG904"
    name = "optimizer-offload-without-zero"
    severity = Severity.WARNING
    concerns = ZERO_KINDS
    read_in = "DeepSpeed 0.19.6, runtime/engine.py, _configure_basic_optimizer"
    bad = (
        Bad(
            """\
{
  "zero_optimization": {
    "stage": 0,
    "offload_optimizer": {
      "device": "cpu"
    }
  }
}
""",
            lines=(5,),
            path="deepspeed.json",
            instead="""\
{
  "zero_optimization": {
    "stage": 2,
    "offload_optimizer": {
      "device": "cpu"
    }
  }
}
""",
        ),
    )
    good = (
        Good(
            """\
compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  offload_optimizer_device: cpu
""",
            path="accelerate.yaml",
        ),
        Good(
            """\
{"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "none"}}}
""",
            path="deepspeed.json",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        zero = zero_of(settings)
        device = device_of(zero, "offload_optimizer") if zero and zero.stage == 0 else None
        if zero and device:
            yield self.finding_in_settings(
                settings,
                device,
                f"{device.told} does nothing with {zero.told}: its states stay on the GPU",
                "set the stage to 1, 2 or 3, or remove the offloading",
            )
