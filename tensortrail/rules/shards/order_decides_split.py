from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shards._saving import (
    KEEP_GROUPS_WHOLE,
    conversions_in_shard_loops,
    is_split,
)
from tensortrail.rules.shared.origins import text_behind


class OrderDecidesSplit(Rule):
    """A state dict is split into shards in an order that separates groups of weights.

    ## What it does
    Reports, as a note, `split_torch_state_dict_into_shards(d)` on an unsorted dict, in a function
    that later converts weights shard by shard.

    ## Why is this bad?
    A conversion that needs several weights together fails: files are filled in the order of the
    dict, so members of a group that stand far apart, such as the weights of many experts, land in
    different files.

    ## Fix safety
    Unsafe: the shards get other contents. Sorting keeps neighbours together, but a group may still
    be split between two files.

    ## References
    - review of huggingface/transformers pull request 47018
    """

    code = "SHD408"
    name = "order-decides-split"
    since = "0.2.0"
    severity = Severity.NOTE
    confidence = Confidence.MEDIUM
    triggers = ("split_torch_state_dict_into_shards", "split_state_dict_into_shards")

    bad = (
        Bad(
            """\
def save(model, state_dict):
    split = split_torch_state_dict_into_shards(state_dict)
    for file, names in split.filename_to_tensors.items():
        shard_state_dict = {name: load(name) for name in names}
        save_file(revert_weight_conversion(model, shard_state_dict), file)
""",
            lines=(2,),
            fixed="""\
def save(model, state_dict):
    split = split_torch_state_dict_into_shards(dict(sorted(state_dict.items())))
    for file, names in split.filename_to_tensors.items():
        shard_state_dict = {name: load(name) for name in names}
        save_file(revert_weight_conversion(model, shard_state_dict), file)
""",
        ),
    )
    good = (
        Good(
            """\
def save(model, state_dict):
    state_dict = dict(sorted(state_dict.items()))
    split = split_torch_state_dict_into_shards(state_dict)
    for file, names in split.filename_to_tensors.items():
        shard_state_dict = {name: load(name) for name in names}
        save_file(revert_weight_conversion(model, shard_state_dict), file)
"""
        ),
        Good(
            """\
def save(model, state_dict):
    split = split_torch_state_dict_into_shards(state_dict)
    for file, names in split.filename_to_tensors.items():
        save_file({name: state_dict[name] for name in names}, file)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.nodes(ast.Call):
            function = module.function_of(call)
            if not is_split(module, call) or function is None or not call.args:
                continue
            given = call.args[0]
            sources = [given, *module.value_of(given).origins]
            if any("sort" in text_behind(module, each) for each in sources):
                continue
            converted = next(conversions_in_shard_loops(module, function), None)
            if converted is None:
                continue
            text = module.text(given)
            edit = module.replace(given, f"dict(sorted({text}.items()))")
            yield self.finding(
                module,
                call,
                f"the order of `{text}` decides which groups of weights are split over files",
                trail=[(converted, "groups are converted here, shard by shard")],
                fixes=[module.fix("sort by name first", Safety.UNSAFE, edit)],
                settings=KEEP_GROUPS_WHOLE if "revert" in module.text(converted.func) else (),
            )
