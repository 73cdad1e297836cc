"""Writes docs/rules/ from the rules: `python -m tensortrail.cli.rule_pages`."""

from __future__ import annotations

from pathlib import Path

from tensortrail.rules import all_rules
from tensortrail.rules.page import seen

DOCS = Path("docs") / "rules"


def pages() -> dict[str, str]:
    """File name -> Markdown."""
    rules = all_rules()
    rows = [
        f"| [{code}]({rule.name}.md) | {rule.name} | {rule.info().summary} |"
        for code, rule in rules.items()
    ]
    found = ["| code | name | what it finds |", "| --- | --- | --- |", *rows]
    messages = ["| what you may see | rules |", "| --- | --- |", *_by_message()]
    index = "\n".join(["# Rules", "", *found, "", "## By message", "", *messages, ""])
    return {f"{rule.name}.md": rule.page() for rule in rules.values()} | {"README.md": index}


def _by_message() -> list[str]:
    """A row for each message that pages of rules begin with."""
    leading: dict[str, list[str]] = {}
    for code, rule in all_rules().items():
        for message in seen(rule.__doc__ or ""):
            leading.setdefault(message, []).append(f"[{code}]({rule.name}.md)")
    return [f"| `{message}` | {', '.join(links)} |" for message, links in sorted(leading.items())]


def main() -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    written = pages()
    for stale in set(DOCS.glob("*.md")) - {DOCS / name for name in written}:
        stale.unlink()
    for name, text in written.items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
