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


def selected_by_name(config: Config) -> frozenset[str]:
    """Those that were asked for in other words than DEFAULT."""
    named = [each for each in (*config.select, *config.extend_select) if each != "DEFAULT"]
    return frozenset(codes_of(named)) if named else frozenset()


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
            names = [*rules, *(rule.name for rule in rules.values())]
            raise ConfigError(f"no rule {selector!r}{nearest(selector, names)}")
        found |= new
    return found


def _own(prefix: str) -> set[str]:
    """Codes of the engine itself; imported where one may be meant: they are made of findings."""
    from tensortrail.analyzer.choosing.own import OWN

    return {code for code in OWN if code.startswith(prefix)}
