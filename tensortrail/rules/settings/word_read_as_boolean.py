from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.settings_file import SettingsFile, SettingsKind

WORDS = (
    ("mixed_precision",),
    ("deepspeed_config", "offload_param_device"),
    ("deepspeed_config", "offload_optimizer_device"),
)


class WordReadAsBoolean(Rule):
    """A word without quotes is read as a boolean, where the library expects the word.

    ## What it does
    Reports `mixed_precision: no`, and `no` as an offload device, without quotes in YAML.

    ## Why is this bad?
    accelerate and DeepSpeed stop with an error: accelerate calls a string method on the value, and
    DeepSpeed knows no device of that name. YAML 1.1 reads `no`, `off` and `yes` as false and true.

    ## Fix safety
    No fix is offered: quote the word.

    ## References
    - https://yaml.org/type/bool.html
    - accelerate 1.15.0: `utils/launch.py`: `args.mixed_precision.lower()`
    """

    code = "CFG915"
    name = "word-read-as-boolean"
    severity = Severity.ERROR
    concerns = (SettingsKind.ACCELERATE,)
    read_in = "accelerate 1.15.0, commands/launch.py and utils/launch.py"
    bad = (
        Bad(
            """\
compute_environment: LOCAL_MACHINE
distributed_type: 'NO'
mixed_precision: no
num_processes: 1
""",
            lines=(3,),
            path="accelerate.yaml",
            instead="""\
compute_environment: LOCAL_MACHINE
distributed_type: 'NO'
mixed_precision: 'no'
num_processes: 1
""",
        ),
    )
    good = (
        Good(
            """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
downcast_bf16: no
mixed_precision: "no"
num_processes: 2
""",
            path="accelerate.yaml",
        ),
    )

    def review(self, settings: SettingsFile) -> Iterator[Finding]:
        for path in WORDS:
            given = settings.given(*path)
            if given and isinstance(given.value, bool) and given.word:
                yield self.finding_in_settings(
                    settings,
                    given,
                    f"{given.told} is read as {str(given.value).lower()}, and not as the word",
                    f"write `{path[-1]}: '{given.word}'`",
                )
