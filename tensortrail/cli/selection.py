"""Which rules run: codes, prefixes, names, ALL and DEFAULT."""

from __future__ import annotations

from collections.abc import Iterable

from tensortrail.config import Config, ConfigError, nearest


def selected(config: Config) -> frozenset[str] | None:
    """The codes to run; None when nothing but the default selection is asked for."""
    if not (config.select or config.ignore or config.extend_select):
        return None
    chosen = codes_of(config.select or ("DEFAULT",)) | codes_of(config.extend_select)
    return frozenset(chosen - codes_of(config.ignore))


def noted(config: Config) -> frozenset[str]:
    """Those of which all notes are wanted, also with little evidence: those that were asked for in
    other words than DEFAULT."""
    if config.notes == "all":
        chosen = selected(config)
        return frozenset(codes_of(["DEFAULT"])) if chosen is None else chosen
    named = [each for each in (*config.select, *config.extend_select) if each != "DEFAULT"]
    return frozenset(codes_of(named)) if named else frozenset()


def some_read_code(codes: frozenset[str] | None) -> bool:
    """Whether any of these rules looks at code; those of stored files and of runs do not."""
    if codes is None:
        return True
    from tensortrail.analyzer.choosing.rule_index import listed

    rules = listed()
    return any(code not in rules or rules[code].reads_code for code in codes)


def why_no_rule(config: Config) -> list[str]:
    """What to say where the selection holds no rule for code."""
    chosen = ",".join((*config.select, *config.extend_select)) or "DEFAULT"
    left_out = f" without {','.join(config.ignore)}" if config.ignore else ""
    return [
        f"selected: {chosen}{left_out}",
        "rules of stored files and of runs do not count: tensortrail doctor and trace run those",
    ]


def codes_of(selectors: Iterable[str]) -> set[str]:
    from tensortrail.analyzer.choosing.rule_index import listed

    rules = listed()
    found: set[str] = set()
    for selector in selectors:
        if selector == "ALL":
            new = set(rules)
        elif selector == "DEFAULT":
            new = {code for code, rule in rules.items() if rule.default}
        else:
            upper = selector.upper()
            new = {
                code
                for code, rule in rules.items()
                if code.startswith(upper) or rule.name == selector
            }
            new |= _own(upper)
        if not new:
            raise UnknownRule(selector)
        found |= new
    return found


class UnknownRule(ConfigError):
    def __init__(self, selector: str) -> None:
        super().__init__(f"no rule {selector!r}{suggested(selector)}")
        self.selector = selector


def suggested(word: str) -> str:
    """ " (did you mean ...?)", or nothing: a code, a family or a name like the word."""
    from tensortrail.analyzer.choosing.mistyped import read_as_digits
    from tensortrail.analyzer.choosing.rule_index import listed

    rules = listed()
    families = {each.rstrip("0123456789") for each in rules}
    if (code := read_as_digits(word)) in rules:
        return f" (did you mean {code!r}?)"
    names = [rule.name for rule in rules.values()]
    return nearest(word.upper(), [*families, *rules]) or nearest(word, names)


def _own(prefix: str) -> set[str]:
    """Codes of the engine itself; imported where one may be meant: they are made of findings."""
    from tensortrail.analyzer.choosing.own_findings import OWN

    return {code for code in OWN if code.startswith(prefix)}
