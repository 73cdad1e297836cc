"""The page of a rule in Markdown: its docstring around the examples that its tests run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tensortrail.rules.examples import Bad, Good

BEFORE_EXAMPLES = ("What it does", "Why is this bad?")
AFTER_EXAMPLES = ("Fix safety", "References")
SEEN = "What you may see"
"""A section that is not on every page: messages that people search for, a line each."""
SHORT = 16
"""Lines of an example that is shown without being asked for."""
_LANGUAGES = {"yaml": "yaml", "json": "json"}


class Facts(NamedTuple):
    code: str
    name: str
    severity: str
    confidence: str
    default: bool
    notes: bool
    """Whether all of its notes are reported by default."""
    since: str
    reads_code: bool
    watches_runs: bool
    examines_checkpoints: bool
    reviews_settings: bool


def page(facts: Facts, text: str, bad: Sequence[Bad], good: Sequence[Good]) -> str:
    before, heading, after = text.strip().partition(f"## {AFTER_EXAMPLES[0]}")
    parts = [
        f"# {facts.name} ({facts.code})",
        _badges(facts, bad),
        before.strip(),
        *_examples(facts.code, bad, good),
        *([_ignoring(facts.code)] if facts.reads_code else []),
        (heading + after).strip(),
    ]
    return "\n\n".join(parts) + "\n"


def seen(text: str) -> list[str]:
    """The messages that the page of a rule quotes."""
    section = text.partition(f"## {SEEN}\n")[2].partition("## ")[0]
    lines = (line.strip() for line in section.splitlines())
    return [line for line in lines if line and line != "```"]


def shown(bad: Sequence[Bad]) -> Bad | None:
    """The example on the page: the first with a right way beside it and without other files."""
    with_answer = [each for each in bad if each.better is not None]
    alone = [each for each in with_answer if not each.files]
    return next(iter(alone or with_answer), None)


def _badges(facts: Facts, bad: Sequence[Bad]) -> str:
    looks = [
        *(["code (`tensortrail check`)"] if facts.reads_code else []),
        *(["recorded runs (`tensortrail trace`)"] if facts.watches_runs else []),
        *(["stored checkpoints (`tensortrail doctor`)"] if facts.examines_checkpoints else []),
        *(["settings files (`tensortrail doctor settings`)"] if facts.reviews_settings else []),
    ]
    fixes = any(each.fixed is not None for each in bad)
    rows = (
        ("Severity", f"{facts.severity}, {facts.confidence} confidence"),
        ("Looks at", " and ".join(looks)),
        ("Fix by `check --fix`", "yes" if fixes else "no"),
        ("Since", facts.since or "the next release"),
        ("On by default", _by_default(facts)),
    )
    return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {said} |" for name, said in rows)])


def _by_default(facts: Facts) -> str:
    if not facts.default:
        return f"no: `--select {facts.code}`"
    return "yes" if facts.notes else f"yes; all of its notes with `--select {facts.code}`"


def _examples(code: str, bad: Sequence[Bad], good: Sequence[Good]) -> list[str]:
    example = shown(bad)
    if example is None:
        return []
    language = _LANGUAGES.get(example.path.rpartition(".")[2], "python")
    parts = ["## Example", _block(_marked(example, code), language)]
    if example.better is not None:
        parts += ["Use instead:", _block(example.better, language)]
    fine = [each.source for each in good if not each.files]
    fine = [each for each in fine if len(each.splitlines()) <= SHORT and each != example.better]
    if fine:
        parts += ["Not reported:", _block(fine[0], language)]
    return parts


def _marked(example: Bad, code: str) -> str:
    """The source with the code of the rule on each line it flags."""
    if example.path.endswith(".json"):
        return example.source
    lines = example.source.splitlines()
    return "\n".join(
        f"{line}  # {code}" if number in example.lines else line
        for number, line in enumerate(lines, 1)
    )


def _block(source: str, language: str) -> str:
    return f"```{language}\n{source.strip()}\n```"


def _ignoring(code: str) -> str:
    return (
        "## When to ignore it\n"
        "Where the code is right as it is, say so on the line:\n\n"
        f"```python\n...  # tensortrail: ignore[{code}] the reason\n```"
    )
