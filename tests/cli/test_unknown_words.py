"""A mistyped word is answered by the one that was meant."""

from __future__ import annotations

import pytest

from tensortrail.cli import main


@pytest.mark.parametrize(("typed", "meant"), [
    (["chek", "a.py"], "; did you mean check?"),
    (["check", "--sytax", "a.py"], "; did you mean --syntax?"),
    (["doctor", "settings", "--formt", "json", "a.yaml"], "; did you mean --format?"),
    (["report", "--format", "htm"], "; did you mean html?"),
    (["trace", "--reherse", "cuda", "a.py"], "; did you mean --rehearse?"),
    (["trace", "--rehears", "cuda", "a.py"], "; did you mean --rehearse?"),
])  # fmt: skip
def test_what_was_meant(typed: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(typed)
    assert left.value.code == 2
    error, usage = capsys.readouterr().err.splitlines()
    assert error.endswith(meant)
    assert usage.endswith(" --help")


@pytest.mark.parametrize(("typed", "command"), [
    (["check", "--quiet", "a.py"], "check"),
    (["doctor", "settings", "--quiet", "a.yaml"], "doctor settings"),
    (["trace", "--silent", "a.py"], "trace"),
])  # fmt: skip
def test_the_help_of_the_command_is_named(
    typed: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(typed)
    *_, usage = capsys.readouterr().err.splitlines()
    assert usage == f"  usage and options: tensortrail {command} --help"


def test_nothing_is_guessed_where_nothing_is_near(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    assert "did you mean" not in capsys.readouterr().err
