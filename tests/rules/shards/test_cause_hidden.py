"""SHD404: which handlers hide a cause, and after which the code truly goes on unbound."""

from __future__ import annotations

import pytest

from tensortrail.analyzer.choosing.triggers import may_flag
from tensortrail.findings import Severity
from tensortrail.rules.shards.cause_hidden import CauseHidden
from tensortrail.testing import fixed, run

SWALLOWED = """\
def build(model, parts):
    try:
        engine = convert_module(model)
    {handler}
{after}
"""


def swallowed(handler: str, after: str) -> str:
    return SWALLOWED.format(handler=handler, after=after)


@pytest.mark.parametrize(
    "handler",
    [
        "except Exception:\n        pass",
        "except:\n        pass",
        "except (RuntimeError, Exception) as e:\n        logger.error(e)",
        "except Exception:\n        import traceback\n        traceback.print_exc()",
        "except BaseException as e:\n        print(e)",
    ],
)
def test_a_swallowed_failure_leaves_the_name_unbound(handler: str) -> None:
    source = swallowed(handler, "    return engine")
    [finding] = run(CauseHidden, source)
    assert finding.severity is Severity.ERROR
    assert "`engine` is not assigned" in finding.message
    assert finding.trail[0].site.line == 3
    assert not finding.fixes
    assert may_flag(CauseHidden, source.encode())


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("could not revert because of offloading", Severity.WARNING),
        ("conversions are not supported, try another format", Severity.WARNING),
        ("Failed to load the model", Severity.NOTE),
        ("could not revert", Severity.NOTE),
    ],
)
def test_a_message_that_names_no_reason_is_a_note(text: str, severity: Severity) -> None:
    work = "    try:\n        shard = revert_weight_conversion(model, shard)\n"
    raised = f"    except Exception:\n        raise RuntimeError('{text}')\n"
    source = f"def save(model, shard):\n{work}{raised}"
    [finding] = run(CauseHidden, source)
    assert finding.severity is severity


@pytest.mark.parametrize(
    "after",
    [
        "    return [\n        engine\n        for engine in parts\n    ]",
        "    return lambda engine: engine",
        "    def inner(engine):\n        return engine\n    return inner",
        "    engine = None\n    return engine",
        "    for engine in parts:\n        use(engine)",
        "    return parts",
    ],
)
def test_another_binding_of_the_name_is_no_use(after: str) -> None:
    handler = "except Exception as e:\n        logger.error(e)"
    assert not run(CauseHidden, swallowed(handler, after))


def test_only_names_bound_at_the_work_or_after_it_are_missing() -> None:
    source = """\
def save(model, path):
    try:
        file = path / "weights"
        size = model.save_pretrained(file)
    except Exception as e:
        logger.error(e)
    use(file)
    use({used})
"""
    assert not run(CauseHidden, source.format(used="path"))
    [finding] = run(CauseHidden, source.format(used="size"))
    assert "`size`" in finding.message


def test_a_flag_set_in_the_try_guards_the_use() -> None:
    source = """\
def save(model):
    done = False
    try:
        engine = convert_module(model)
        done = True
    except Exception as e:
        logger.error(e)
    {then}
    return engine
"""
    assert not run(CauseHidden, source.format(then="if not done:\n        return None"))
    assert run(CauseHidden, source.format(then="model.eval()"))


def test_a_loop_that_tries_again_binds_before_it_is_left() -> None:
    source = """\
def load(path):
    while True:
        try:
            weights = load_state_dict(path)
            break
        except Exception as e:
            logger.warning(e)
    return weights
"""
    assert not run(CauseHidden, source)


def test_each_turn_of_a_loop_may_go_on_unbound() -> None:
    source = """\
def load(paths):
    for path in paths:
        try:
            weights = load_state_dict(path)
        except Exception as e:
            logger.warning(e)
        use(weights)
"""
    [finding] = run(CauseHidden, source)
    assert finding.site.line == 5


CLAIM = 'raise RuntimeError("could not convert because of offloading")'


@pytest.mark.parametrize(
    "shown",
    ["logger.exception('x')", "logger.error('x', exc_info=True)", "traceback.print_exc()"],
)
def test_a_cause_that_is_shown_is_not_hidden(shown: str) -> None:
    source = (
        "def f(m):\n    try:\n        convert(m)\n    except Exception:\n        {}\n        {}\n"
    )
    assert not run(CauseHidden, source.format(shown, CLAIM))
    assert run(CauseHidden, source.format("m.eval()", CLAIM))


def test_no_claim_of_a_cause_is_left_to_implicit_chaining() -> None:
    source = """\
def f(m):
    try:
        convert(m)
    except Exception:
        raise RuntimeError("conversion ended early")
"""
    assert not run(CauseHidden, source)


def test_a_bare_except_keeps_catching_all_it_caught() -> None:
    source = f"def f(m):\n    try:\n        convert(m)\n    except:\n        {CLAIM}\n"
    mended = source.replace("except:", "except BaseException as error:")
    assert fixed(CauseHidden, source) == mended.replace(CLAIM, CLAIM + " from error")


def test_the_fix_takes_a_name_that_is_free() -> None:
    source = f"""\
def f(m, error=None):
    try:
        convert(m)
    except Exception:
        {CLAIM}
    return error
"""
    assert "except Exception as cause:" in fixed(CauseHidden, source)


def test_advice_on_shard_sizes_is_set_right() -> None:
    claim = 'raise RuntimeError("a group is split: try reducing `max_shard_size`")'
    source = f"def f(m):\n    try:\n        convert(m)\n    except Exception:\n        {claim}\n"
    [finding] = run(CauseHidden, source)
    [size] = [each for each in finding.settings if each.name == "max_shard_size"]
    assert size.value.startswith("above")
    [other] = run(CauseHidden, source.replace(claim, CLAIM))
    assert not other.settings
