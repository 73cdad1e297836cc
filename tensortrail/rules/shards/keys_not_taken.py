from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Did, Rule, Timeline
from tensortrail.rules.shared.loads import file_of, is_of_another_class
from tensortrail.rules.timeline import Event

_STRICT_IS_OFF = "Module.load_state_dict"
_MOST_NAMES = 3


class KeysNotTaken(Rule):
    """A load took quantized weights from a file, and nothing took the scales that belong to them.

    ## What it does
    Reports a load that is not strict and leaves keys of the file over. It is an error if a key
    stands beside a weight of int8, uint8, float8 or float4 that was taken: without its scale or
    quantization state the weight has other values than it was saved with. For other keys there is a
    note where `load_state_dict` was called with `strict=False`. Found in recorded runs only.

    ## Why is this bad?
    A quantized weight is a small number that means `weight * scale`. A model that takes it as
    it is computes with weights that are wrong by a factor of their own for each row or block, and
    raises nothing.

    ## Example
    ```python
    model = Model(config)  # without the quantization config of the file
    model.load_state_dict(load_file("fp8.safetensors"), strict=False)  # drops scales
    ```
    Use instead:
    ```python
    model = quantized(Model(config), config.quantization_config)
    model.load_state_dict(load_file("fp8.safetensors"))
    ```

    ## Fix safety
    No fix is offered: the model has to be built as the one that was saved.

    ## References
    - vllm-project/vllm: scales of a quantized checkpoint were dropped when weights were reloaded
    - pytorch/pytorch documentation of `torch.nn.Module.load_state_dict`, `strict`
    """

    code = "SHD417"
    name = "keys-not-taken"
    since = "0.2.0"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for load in timeline.events(Did.HOOK):
            scales, unused = load.facts.get("scales"), load.facts.get("unused")
            if scales:
                yield self._scales(timeline, load, dict(scales))
            elif unused and load.op == _STRICT_IS_OFF and not is_of_another_class(load):
                count = load.facts.get("unused_count", len(unused))
                yield self.finding_in_run(
                    timeline,
                    load,
                    f"nothing took {_named(unused, count)} of {file_of(load)}",
                    severity=Severity.NOTE,
                    confidence=Confidence.LOW,
                )

    def _scales(self, timeline: Timeline, load: Event, scales: dict[str, str]) -> Finding:
        kinds = " and ".join(sorted(set(scales.values())))
        return self.finding_in_run(
            timeline,
            load,
            f"nothing took {_named(list(scales), len(scales))} of {file_of(load)}, and the {kinds} "
            "weights beside them were taken without: they have other values than were saved",
            evidence={"keys": str(len(scales))},
        )


def _named(keys: Sequence[str], count: int) -> str:
    told = ", ".join(f"`{key}`" for key in keys[:_MOST_NAMES])
    return f"{told} and {count - _MOST_NAMES} more" if count > _MOST_NAMES else told
