"""Which findings survive when an example is written otherwise: a table of rules and rewrites.

    python benchmarks/paraphrases.py [--rule CODE ...] [--holes]

A cell is "kept of all" over the rule's bad examples; a rewrite that does not apply to any of them
has none. A good example that a rewrite makes flagged is listed below the table: there must be none.
`--holes` shows the rewritten source of what is lost.
"""

from __future__ import annotations

import argparse
from collections import Counter

from tensortrail.rules import Rule, all_rules
from tensortrail.testing.paraphrases import REWRITES
from tensortrail.testing.surviving import Outcome, outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rule", nargs="*", default=[], help="only these codes")
    parser.add_argument("--holes", action="store_true", help="show what is lost")
    options = parser.parse_args()
    chosen = [
        rule
        for code, rule in all_rules().items()
        if rule.reads_code() and (not options.rule or code in options.rule)
    ]
    found = [outcome for rule in chosen for outcome in outcomes(rule)]
    print_table(chosen, [each for each in found if each.is_bad])
    for each in found:
        if not each.as_it_should:
            what = "lost" if each.is_bad else "flagged though good"
            print(f"{each.code} example {each.number} {each.rewrite}: {what}")
            if options.holes:
                print("    " + each.source.replace("\n", "\n    "))


def print_table(rules: list[type[Rule]], found: list[Outcome]) -> None:
    kept = Counter((each.code, each.rewrite) for each in found if each.as_it_should)
    every = Counter((each.code, each.rewrite) for each in found)
    width = max(map(len, REWRITES))
    print(" " * width, *(rule.code for rule in rules), " all")
    for name in REWRITES:
        cells = [(kept[rule.code, name], every[rule.code, name]) for rule in rules]
        shown = [f"{of_kept}/{of_all}" if of_all else "-" for of_kept, of_all in cells]
        total = f"{sum(a for a, _ in cells)}/{sum(b for _, b in cells)}"
        print(f"{name:<{width}}", *(f"{cell:>6}" for cell in shown), f" {total}")
    share = sum(kept.values()) / max(1, sum(every.values()))
    print(f"kept: {sum(kept.values())} of {sum(every.values())} ({share:.1%})")


if __name__ == "__main__":
    main()
