from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shards._saving import conversions_in_shard_loops

_INDEX = re.compile(r"weight_map|tensor_to_filename|filename_to_tensors")


class IndexNotFromWritten(Rule):
    """The index of a checkpoint is not built from what was written.

    ## What it does
    Flags a `weight_map` built from all keys of a dict while the loop that writes skips some, a
    `weight_map` taken from the split while shards are converted (and renamed) afterwards, and
    `dict.update(<generator of dicts>)`, which always raises.

    ## Why is this bad?
    The index then names tensors that no file has, or misses ones that were written: the
    checkpoint does not load. `weight_map.update({k: f} for k in keys)` raises a ValueError about
    the length of an element, which a broad `except` around it turns into something else.

    ## Example
    ```python
    weight_map.update({key: file} for key in shard)
    ```
    Use instead:
    ```python
    weight_map.update({key: file for key in shard})
    ```

    ## Fix safety
    Safe for the generator of dicts: the code raises before and does what it says after. The
    other forms get no fix.

    ## References
    - huggingface/transformers issue 47333 and pull request 47346
    - huggingface/huggingface_hub pull request 4391
    """

    code = "SHD403"
    name = "index-not-from-written"
    severity = Severity.ERROR
    triggers = (".update(", "weight_map", "tensor_to_filename")
    shape = (
        re.compile(rb"\.update\(\s*\(?\s*\{[^\n]*\}\s*\n?[^\n]*\bfor\b"),
        re.compile(rb"weight_map[\"']?\s*[=:]"),
        re.compile(rb"tensor_to_filename|filename_to_tensors"),
    )

    bad = (
        Bad(
            """\
def save(weight_map, shard, file):
    weight_map.update({key: file} for key in shard)
""",
            lines=(2,),
            fixed="""\
def save(weight_map, shard, file):
    weight_map.update({key: file for key in shard})
""",
        ),
        Bad(
            """\
def split(state_dict, filename):
    shard = {}
    for key, tensor in state_dict.items():
        if isinstance(tensor, str):
            continue
        shard[key] = tensor
    return Split(shard, tensor_to_filename={key: filename for key in state_dict.keys()})
""",
            lines=(7,),
        ),
        Bad(
            """\
def save(model, state_dict):
    split = split_torch_state_dict_into_shards(state_dict)
    index = {"weight_map": split.tensor_to_filename}
    for file, names in split.filename_to_tensors.items():
        shard_state_dict = {name: state_dict[name] for name in names}
        save_file(revert_weight_conversion(model, shard_state_dict), file)
    return index
""",
            lines=(3,),
        ),
    )
    good = (
        Good("def save(m, shard, f):\n    m.update({key: f for key in shard})\n"),
        Good("def save(m, pairs):\n    m.update((key, value) for key, value in pairs)\n"),
        Good(
            """\
def split(state_dict, filename):
    shard = {}
    for key, tensor in state_dict.items():
        if isinstance(tensor, str):
            continue
        shard[key] = tensor
    return Split(shard, tensor_to_filename={key: filename for key in shard})
"""
        ),
        Good(
            """\
def save(state_dict):
    split = split_torch_state_dict_into_shards(state_dict)
    return {"weight_map": split.tensor_to_filename}
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.nodes(ast.Call):
            yield from self._generator_of_dicts(module, call)
        for function in module.nodes(ast.FunctionDef):
            yield from self._from_unfiltered(module, function)
            yield from self._from_split(module, function)

    def _generator_of_dicts(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "update"):
            return
        if len(call.args) != 1 or not isinstance(call.args[0], ast.GeneratorExp):
            return
        generator = call.args[0]
        element = generator.elt
        if not isinstance(element, ast.Dict) or len(element.keys) != 1 or element.keys[0] is None:
            return
        pair = f"{module.text(element.keys[0])}: {module.text(element.values[0])}"
        text = module.text(generator).strip()
        inner = text[1:-1].strip() if text.startswith("(") and text.endswith(")") else text
        clauses = inner[len(module.text(element)) :].strip()
        edit = module.replace(generator, f"{{{pair} {clauses}}}")
        if text == inner:
            fix = module.fix("one dict of all pairs", Safety.SAFE, edit)
        else:  # the call's own parentheses belong to the generator
            wrapped = module.replace(generator, f"({{{pair} {clauses}}})")
            fix = module.fix("one dict of all pairs", Safety.SAFE, wrapped)
        yield self.finding(
            module,
            call,
            f"`{module.text(call.func)}` is given a generator of dicts: this raises ValueError",
            trail=[(generator, "each element is a dict, where a pair is expected")],
            fixes=[fix],
        )

    def _from_unfiltered(self, module: Module, function: ast.FunctionDef) -> Iterator[Finding]:
        skipped = _dicts_with_skips(module, function)
        for comprehension in module.nodes(ast.DictComp, function):
            source = _iterated(module, comprehension.generators[0].iter)
            if source not in skipped or comprehension.generators[0].ifs:
                continue
            if not _INDEX.search(_given_to(module, comprehension)):
                continue
            yield self.finding(
                module,
                comprehension,
                f"the index lists every key of `{source}`, but some are skipped when writing",
                trail=[(skipped[source], "entries are skipped here")],
            )

    def _from_split(self, module: Module, function: ast.FunctionDef) -> Iterator[Finding]:
        for literal in module.nodes(ast.Dict, function):
            for key, value in zip(literal.keys, literal.values, strict=True):
                if not (isinstance(key, ast.Constant) and key.value == "weight_map"):
                    continue
                if not (isinstance(value, ast.Attribute) and value.attr == "tensor_to_filename"):
                    continue
                converted = next(conversions_in_shard_loops(module, function), None)
                if converted is not None:
                    yield self.finding(
                        module,
                        value,
                        "the index has the names from before the shards were converted",
                        trail=[(converted, "names change here, shard by shard")],
                    )


def _dicts_with_skips(module: Module, function: ast.FunctionDef) -> dict[str, ast.AST]:
    """Dicts that a loop of the function goes over while it skips entries."""
    found: dict[str, ast.AST] = {}
    for loop in module.nodes(ast.For, function):
        source = _iterated(module, loop.iter)
        for statement in loop.body:
            for below in module.nodes(ast.Continue, statement):
                if isinstance(statement, ast.If) and source:
                    found.setdefault(source, below)
    return found


def _iterated(module: Module, source: ast.expr) -> str:
    """`d` of `d`, `d.keys()` and `d.items()`."""
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        if source.func.attr in ("keys", "items"):
            return module.text(source.func.value)
        return ""
    return module.text(source) if isinstance(source, (ast.Name, ast.Attribute)) else ""


def _given_to(module: Module, node: ast.AST) -> str:
    """The keyword, dict key or variable the node is the value of."""
    parent = module.parent(node)
    if isinstance(parent, ast.keyword):
        return parent.arg or ""
    if isinstance(parent, ast.Assign):
        return " ".join(module.text(each) for each in parent.targets)
    if isinstance(parent, ast.Dict) and node in parent.values:
        key = parent.keys[parent.values.index(node)]
        return module.text(key) if key is not None else ""
    return ""
