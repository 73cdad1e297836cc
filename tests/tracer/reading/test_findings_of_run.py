"""A run judged, and findings in source beside a run of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.findings import Confidence, Finding, Severity, Site
from tensortrail.rules import Did, Rule, Timeline, all_rules
from tensortrail.tracer.reading.findings_of_run import findings, merge
from tensortrail.tracer.reading.source_lines import Ran, changed
from tests.rules.recorded import WRAPPER, record

SAVES = """\
import torch
from accelerate import init_empty_weights

def export(model, path):
    torch.save(
        model.state_dict(),
        path,
    )

with init_empty_weights():
    empty = torch.nn.Linear(4, 4)
torch.save(empty.state_dict(), folder + "/empty.pt")
"""


class Failing(Rule):
    code, name = "ZZZ901", "failing"

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        raise KeyError("no such event")


class Explaining(Rule):
    """Says more than DEV508 about the first line on which something raised."""

    code, name, explains = "ZZZ902", "explaining", ("DEV508",)

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        yield self.finding_in_run(timeline, timeline.events(Did.ERROR)[0], "because of this")


def static(program: Path, code: str) -> list[Finding]:
    judged = judge(str(program), program.read_bytes(), [all_rules()[code]()], open_project())
    return list(judged.findings)


def test_a_rule_that_fails_ends_only_its_own_work(tmp_path: Path) -> None:
    _, timeline, _ = record(tmp_path, "import torch\ntorch.empty(3).sum()\n")
    judged = findings(timeline, [Failing(), all_rules()["NEW306"]()])
    assert [each.code for each in judged.findings] == ["NEW306"]
    assert judged.problems == ("ZZZ901 failed on this run: KeyError: 'no such event'",)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_finding_that_says_more_about_a_line_stands_alone_there(
    tmp_path: Path, reverse: bool
) -> None:
    source = """\
    import torch
    for line in "12":
        try:
            torch.ones(2, device="meta").tolist()
        except NotImplementedError:
            pass
    torch.ones(2, device="meta").tolist()
    """
    _, timeline, _ = record(tmp_path, source)
    rules = [all_rules()["DEV508"](), Explaining()]
    judged = findings(timeline, reversed(rules) if reverse else rules)
    assert [(each.code, each.site.line) for each in judged.findings] == [
        ("ZZZ902", 4), ("DEV508", 7),
    ]  # fmt: skip


def test_the_default_rules_judge_without_being_named(tmp_path: Path) -> None:
    source = """\
    import torch
    torch.empty(3).sum()
    torch.save(torch.ones(2, device="meta"), folder + "/a.pt")
    torch.ones(2, device="meta").tolist()
    """
    _, timeline, _ = record(tmp_path, source)
    found = findings(timeline).findings
    assert [(each.code, each.site.line) for each in found] == [
        ("NEW306", 2), ("SHD405", 3), ("DEV508", 4),
    ]  # fmt: skip


def test_a_harmless_run_has_no_findings(tmp_path: Path) -> None:
    source = """\
    import torch
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(3):
        loss = model(torch.randn(5, 4)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() > 1e9:
            break
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder + "/c")
    again = torch.load(folder + "/c", mmap=True)
    model.load_state_dict(again["model"])
    model.double().to("cpu")
    """
    _, timeline, error = record(tmp_path, source)
    assert error is None
    assert findings(timeline).findings == ()


def test_a_finding_that_the_run_confirms(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    program, timeline, _ = record(tmp_path, SAVES)
    (found,) = static(program, "SHD405")
    (merged,) = merge([found], timeline, [all_rules()["SHD405"]()])
    assert merged.confidence is Confidence.HIGH
    assert merged.site == found.site
    assert merged.evidence["the run"].startswith("confirmed this: `torch.save` is given")
    assert "tensors 2, missing 80 B" in merged.evidence["the run"]
    assert merged.trail[: len(found.trail)] == found.trail
    assert any("cpu -> meta" in step.message for step in merged.trail)


def test_a_finding_that_the_run_passes_without_harm(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    source = SAVES.replace("torch.save(empty", "empty.to_empty(device='cpu'); torch.save(empty")
    program, timeline, _ = record(tmp_path, source)
    line = 1 + source[: source.index("torch.save(empty")].count("\n")
    (merged,) = merge([_at(program, line)], timeline, [all_rules()["SHD405"]()])
    assert merged.confidence is Confidence.LOW
    assert merged.evidence["the run"].startswith("passed here without harm (")


def test_the_whole_statement_counts(tmp_path: Path) -> None:
    source = """\
    import torch
    torch.save(
        {
            "a": torch.ones(2),
        },
        folder + "/a.pt",
    )
    """
    program, timeline, _ = record(tmp_path, source)
    (merged,) = merge([_at(program, 6)], timeline)
    assert merged.confidence is Confidence.LOW


def test_what_the_run_does_not_know_stays(tmp_path: Path) -> None:
    source = """\
    import torch
    def export(model):
        torch.save(model.state_dict(), "x")
    torch.ones(3).to("meta")
    """
    program, timeline, _ = record(tmp_path, source)
    never_run = _at(program, 3)
    no_runtime_half = _at(program, 4, "OFF101")
    assert merge([never_run, no_runtime_half], timeline) == [never_run, no_runtime_half]


def test_a_file_that_changed_since_says_nothing(tmp_path: Path) -> None:
    source = 'import torch\ntorch.save(torch.ones(3), folder + "/a.pt")\n'
    program, timeline, _ = record(tmp_path, source)
    found = _at(program, 2)
    os.utime(program, (timeline.started + 60, timeline.started + 60))
    assert not timeline.changed(str(program)), "the same text"
    without_digests = Ran(timeline.started)
    assert changed(str(program), without_digests) == "it changed since the run"
    Path(program).write_text("import os\n" + source)
    assert merge([found], timeline) == [found]


def test_what_only_the_run_shows_is_added(tmp_path: Path) -> None:
    source = 'import torch\nx = 1\ntorch.save(torch.ones(3, device="meta"), folder + "/a.pt")\n'
    program, timeline, _ = record(tmp_path, source)
    first = _at(program, 2)
    merged = merge([first], timeline)
    assert [(each.code, each.site.line) for each in merged] == [("SHD405", 2), ("SHD405", 3)]
    assert merged[0] == first


def test_a_class_is_confirmed_by_what_its_tensors_did(tmp_path: Path) -> None:
    source = WRAPPER.replace('said = {"device": inner.device, "dtype"', 'said = {"dtype"') + (
        "weight = Packed(torch.ones(4, device='meta'))\nother = weight.detach()\n"
    )
    program, timeline, _ = record(tmp_path, source)
    made = 1 + source[: source.index("_make_wrapper_subclass")].count("\n")
    (merged,) = merge([_at(program, made, "NEW303")], timeline, [all_rules()["NEW303"]()])
    assert merged.confidence is Confidence.HIGH
    assert "says it is on cpu" in merged.evidence["the run"]


def test_relative_paths_are_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, timeline, _ = record(
        tmp_path, 'import torch\ntorch.save(torch.ones(2, device="meta"), folder + "/a")\n'
    )
    monkeypatch.chdir(tmp_path)
    (merged,) = merge([_at(Path("program.py"), 2)], timeline)
    assert "confirmed" in merged.evidence["the run"]


def _at(program: Path, line: int, code: str = "SHD405") -> Finding:
    """A finding in source on that line."""
    name = all_rules()[code].name
    return Finding(code, name, "m", Severity.ERROR, Confidence.MEDIUM, Site(str(program), line))
