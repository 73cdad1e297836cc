"""The same code written otherwise: rewrites that keep the meaning of an example.

One file a kind of rewrite; each lists its own in `REWRITES`, by a name that a table can show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tensortrail.rules.examples import Bad, Good
from tensortrail.testing.paraphrases import (
    branches,
    calls,
    declared_types,
    files,
    functions,
    imports,
    layout,
    names,
    values,
)
from tensortrail.testing.paraphrases.rewriting import Rewrite

_KINDS = (names, values, functions, branches, calls, imports, declared_types, files, layout)
REWRITES: Mapping[str, Rewrite] = {
    name: rewrite for kind in _KINDS for name, rewrite in kind.REWRITES.items()
}


@dataclass(frozen=True)
class Paraphrase:
    """An example in other words."""

    name: str
    """Of the rewrite."""
    source: str
    files: Mapping[str, str]
    path: str


def paraphrases(example: Bad | Good) -> Iterator[Paraphrase]:
    """The example after every rewrite that changes it; what a rewrite cannot do is left out."""
    for name, rewrite in REWRITES.items():
        rewritten = rewrite(example.source)
        if rewritten is not None:
            others = {**example.files, **rewritten.files}
            yield Paraphrase(name, rewritten.source, others, example.path)
