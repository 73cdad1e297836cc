"""Writes docs/rules/ from the rules: `python -m tensortrail.cli.rule_pages`."""

from __future__ import annotations

from pathlib import Path

from tensortrail.rules import all_rules

DOCS = Path("docs") / "rules"


def pages() -> dict[str, str]:
    """File name -> Markdown."""
    rules = all_rules()
    rows = [
        f"| [{code}]({rule.name}.md) | {rule.name} | {rule.info().summary} |"
        for code, rule in rules.items()
    ]
    index = "\n".join(
        ["# Rules", "", "| code | name | what it finds |", "| --- | --- | --- |", *rows, ""]
    )
    return {f"{rule.name}.md": rule.page() for rule in rules.values()} | {"README.md": index}


def main() -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    written = pages()
    for stale in set(DOCS.glob("*.md")) - {DOCS / name for name in written}:
        stale.unlink()
    for name, text in written.items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
