"""The page of a run: what it holds, that nothing in it acts, and that it works in a browser."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tensortrail.findings import (
    Confidence,
    Edit,
    Finding,
    Fix,
    Safety,
    Setting,
    Severity,
    Site,
    Step,
)
from tensortrail.rules.timeline import Did, Gone
from tensortrail.tracer.exports import html, perfetto
from tensortrail.tracer.exports.page_storages import FIRST, LAST, choose
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline

from .browser import Browser, needs_browser, started
from .trails import HOSTILE, LIBRARY, NOWHERE, Recording, small_run

Patch = pytest.MonkeyPatch


def finding(word: str = "moved for nothing") -> Finding:
    site = Site("train.py", 12, function="main", source=f"    model.to(device)  # {word}")
    return Finding(
        code="DEV502",
        name=word,
        message=f"message: {word}",
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        site=site,
        trail=(Step(site, f"step: {word}"),),
        fixes=(Fix(f"fix: {word}", Safety.SAFE, (Edit(site, word),), f"-old\n+{word}"),),
        settings=(Setting("lib", word, "False", f"why: {word}", "compile(...)"),),
        siblings=(Site("other.py", 3),),
        evidence={"calls": word},
    )


def page(timeline: RunTimeline, findings: Sequence[Finding] = ()) -> str:
    out = io.StringIO()
    html.write(timeline, findings, out)
    return out.getvalue()


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


# --- what it holds ---------------------------------------------------------------------------


def test_it_holds_the_run(tmp_path: Path, monkeypatch: Patch) -> None:
    data = data_of(page(small_run(tmp_path, monkeypatch), [finding()]))
    texts = data["texts"]
    assert data["run"]["argv"] == ["train.py", "--fast"]
    assert data["run"]["events"] == 10
    assert [texts[row[2]] for row in data["storages"]] == ["model.weight", "model.weight", ""]
    assert [texts[row[3]] for row in data["storages"]] == ["cpu", "cuda:0", "meta"]
    moved = data["storages"][1]
    assert moved[8:11] == [1.0, -1, 0]
    told = [texts[event[2]] for event in moved[12]]
    assert told[0] == "moved cpu -> cuda:0 by to (400 B)"
    assert [data["kinds"][event[1]] for event in moved[12]] == ["move", "meet", "error", "save"]
    assert "RuntimeError" in told[2]
    assert "out.pt" in told[3]
    assert [len(use["curve"]) for use in data["devices"]] == [600, 600, 600]
    assert data["findings"][0]["code"] == "DEV502"


def test_large_runs_keep_the_page_small(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    numbers = [run.storage("cpu", 10 * n, f"w{n}" if n < 5 else "") for n in range(100)]
    for at, number in enumerate(numbers):
        run.did(Did.CREATE, number, at=at)
    for number in numbers[10:]:
        run.did(Did.FREE, number, at=200)
    for _ in range(100):
        run.did(Did.ALIAS, numbers[7], at=201)
    run.did(Did.MEET, numbers[11], numbers[12], at=202)
    [chosen] = choose(Summary(run.read()), most=40)
    kept = set(chosen.counts)
    assert len(kept) == 40
    assert {numbers[7], numbers[11], numbers[12], *numbers[:5]} <= kept
    assert set(numbers[80:]) <= kept
    assert chosen.counts[numbers[7]] == 101
    assert len(chosen.rows[numbers[7]]) == FIRST + LAST


def test_where_bytes_came_from_is_kept_with_them(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    chain = [run.storage("cpu", 1) for _ in range(4)]
    for before, after in pairwise(chain):
        run.did(Did.MOVE, after, before)
    run.did(Did.FREE, chain[0])
    for _ in range(3):
        run.did(Did.ALIAS, chain[-1])
    for _ in range(9):
        run.did(Did.CREATE, run.storage("cpu", 500))
    [chosen] = choose(Summary(run.read()), most=4)
    assert chain[-1] in chosen.counts
    assert set(chain) <= set(chosen.counts)
    assert chosen.before[chain[-1]] == chain[-2]


def test_the_policy_fits_the_only_script_and_style(tmp_path: Path, monkeypatch: Patch) -> None:
    text = page(small_run(tmp_path, monkeypatch))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert policy
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    for body in (style, script):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", text)


def test_the_script_makes_no_markup_of_text() -> None:
    script = "".join(html._read(f"{name}.js") for name in html.SCRIPTS)
    forbidden = ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "fetch(")
    assert not [word for word in forbidden if word in script]


def hostile_run(folder: Path, monkeypatch: Patch) -> RunTimeline:
    run = Recording(folder, monkeypatch, argv=["x.py", HOSTILE], cwd=HOSTILE)
    run.thread = run.phase = HOSTILE
    run.did(Did.PHASE, at=0, facts={"began": HOSTILE})
    first = run.storage(HOSTILE, 4, HOSTILE, HOSTILE, kind=HOSTILE)
    second = run.storage("cuda:0", 4, HOSTILE)
    place = (HOSTILE, 1, HOSTILE)
    run.did(Did.CREATE, first, at=1, op=HOSTILE, site=place, by=place)
    run.did(Did.MOVE, second, first, at=2, op=HOSTILE, site=place, by=place)
    operand = {"arg": HOSTILE, "device": HOSTILE, "dtype": HOSTILE, "shape": [1], "storage": first}
    facts = {"type": HOSTILE, "message": HOSTILE, "operands": [operand]}
    run.did(Did.ERROR, second, first, at=3, op=HOSTILE, site=place, facts=facts)
    return run.read()


def test_hostile_text_stays_in_the_data(tmp_path: Path, monkeypatch: Patch) -> None:
    clean = page(small_run(tmp_path, monkeypatch))
    (tmp_path / "hostile").mkdir()
    text = page(hostile_run(tmp_path / "hostile", monkeypatch), [finding(HOSTILE)])
    assert text.count("<script") == clean.count("<script") == 2
    assert "<img" not in text
    assert "\u2028" not in text
    assert data_of(text)["run"]["argv"] == ["x.py", HOSTILE]


@pytest.mark.parametrize("odd", [None, "x", 1.5, -1, 2**63, [], {"a": {}}, [[1]]])
def test_facts_of_any_form_have_a_page(tmp_path: Path, monkeypatch: Patch, odd: Any) -> None:
    run = Recording(tmp_path, monkeypatch, argv=odd, cwd=odd)
    storage = run.storage()
    words = "before after operands devices began ended type message path key next why".split()
    for did in Did:
        run.did(did, storage, storage, facts=dict.fromkeys(words, odd))
    timeline = run.read()
    assert data_of(page(timeline))["run"]["events"] == len(Did)
    perfetto.write(timeline, io.StringIO())


# --- in a browser ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with started() as it:
        yield it


def shown(browser: Browser, text: str, folder: Path, fragment: str = "") -> None:
    file = folder / "run.html"
    file.write_text(text, encoding="utf-8")
    browser.open(file.as_uri() + fragment)


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_search_and_click(
    browser: Browser, tmp_path: Path, monkeypatch: Patch, scheme: str
) -> None:
    browser.prefer(scheme)
    shown(browser, page(small_run(tmp_path, monkeypatch), [finding()]), tmp_path)
    assert browser.run("return document.documentElement.dataset.theme") == scheme
    assert browser.text("#matches") == "3 storages"
    browser.type("#query", "weight cuda")
    assert browser.text("#matches") == "1 of 3 storages match “weight cuda”"
    assert browser.text("#found tbody").split("\t")[0] == "model.weight"
    browser.click("#found .link")
    trail = browser.text("#trail")
    assert "read onto cpu by load_file (w.safetensors)" in trail
    assert "moved cpu -> cuda:0 by to (400 B)" in trail
    assert "train.py:12 main" in trail
    assert f"by {LIBRARY[0]}:{LIBRARY[1]} {LIBRARY[2]}" in trail
    assert "storage=main%3A2" in browser.run("return location.hash")
    browser.type("body", "\ue00c")  # Escape
    assert browser.run("return document.getElementById('trail').hidden")
    assert not browser.complaints()


@needs_browser
def test_a_bar_can_be_clicked(browser: Browser, tmp_path: Path, monkeypatch: Patch) -> None:
    shown(browser, page(small_run(tmp_path, monkeypatch)), tmp_path)
    browser.run("document.querySelector('canvas').scrollIntoView({behavior: 'instant'})")
    script = """const box = document.querySelector('canvas').getBoundingClientRect();
        return [box.left, box.top, box.width]"""
    left, top, width = browser.run(script)
    # The lane of the accelerator is the first one, and its storage lives from 1 s to 4 s.
    browser.click_at(int(left + 112 + (width - 112) * 0.6), int(top + 6 + 34 - 8))
    assert browser.text("#trail-name") == "model.weight"


@needs_browser
def test_keys_zoom_and_pan_both_charts(
    browser: Browser, tmp_path: Path, monkeypatch: Patch
) -> None:
    shown(browser, page(small_run(tmp_path, monkeypatch)), tmp_path)
    marks = """return [...document.querySelectorAll('#memory text')].map((e) => e.textContent)
        .filter((text) => / m?s$/.test(text))"""
    assert browser.run(marks)[-1] == "3.5 s"
    browser.type("#storages canvas", "+++")
    assert browser.run(marks)[0] == "1.4 s"
    assert browser.run(marks)[-1] == "2.6 s"
    browser.type("#storages canvas", "\ue014")  # right
    assert browser.run(marks)[0] == "1.6 s"
    browser.type("#storages canvas", "0")
    assert browser.run(marks)[-1] == "3.5 s"


@needs_browser
def test_the_address_says_what_is_shown(
    browser: Browser, tmp_path: Path, monkeypatch: Patch
) -> None:
    text = page(small_run(tmp_path, monkeypatch))
    shown(browser, text, tmp_path, "#storage=main:3&q=meta&theme=dark")
    assert browser.text("#trail-name") == "Float8Tensor bfloat16 20"
    assert browser.text("#matches").startswith("1 of 3")
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    browser.click("#theme")
    assert browser.run("return document.documentElement.dataset.theme") == "light"
    browser.run("localStorage.clear()")
    shown(browser, text, tmp_path, "#storage=gone:9")
    assert browser.run("return document.getElementById('trail').hidden")


@needs_browser
def test_all_sections_are_there(browser: Browser, tmp_path: Path, monkeypatch: Patch) -> None:
    shown(browser, page(small_run(tmp_path, monkeypatch), [finding()]), tmp_path)
    assert browser.text("h1") == "train.py --fast"
    told = browser.text("#findings")
    for each in ("DEV502", "fix: moved", "+moved for nothing", "why: moved", "step: moved"):
        assert each in told, "in sight, with the trail open"
    assert browser.run("return document.getElementById('troubles')") is None, "told once"
    assert "two devices" in browser.run("return document.getElementById('findings').textContent")
    assert "load" in browser.run("return document.querySelector('#memory svg').textContent")
    assert "torch/nn/modules/module.py:1300 to" in browser.text("#moves")
    assert "400 B in 1 storage" in browser.text("#alive")
    browser.click("#moves .link")
    assert browser.text("#matches") == "3 of 3 storages match “train.py:12 main”"
    missing = """const named = (e) => e.innerText || e.ariaLabel || e.closest('svg[aria-label]')
        return [...document.querySelectorAll('button, input, select, a, canvas, svg')]
            .filter((e) => !named(e)).map((e) => e.outerHTML)"""
    assert browser.run(missing) == []
    wide = "return document.documentElement.scrollWidth <= innerWidth"
    assert browser.run(wide)
    assert not browser.complaints()


@needs_browser
def test_hostile_text_does_nothing(browser: Browser, tmp_path: Path, monkeypatch: Patch) -> None:
    text = page(hostile_run(tmp_path, monkeypatch), [finding(HOSTILE)])
    shown(browser, text, tmp_path, "#storage=main:2&q=img")
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.run("return document.scripts.length") == 2
    assert "<img src=x onerror=alert(1)>" in browser.text("#trail-name")
    everything = browser.run("return document.body.innerText + document.title")
    assert not set("\u202e\x1b\u2028") & set(everything)
    assert "\\u{202e}" in everything
    assert not browser.complaints()


@needs_browser
def test_an_empty_run_has_a_page(browser: Browser, tmp_path: Path, monkeypatch: Patch) -> None:
    shown(browser, page(Recording(tmp_path, monkeypatch).read()), tmp_path)
    assert browser.text("h1") == "train.py --fast"
    assert browser.text("#matches") == "0 storages"
    assert "The rules found nothing wrong" in browser.text("#findings")
    assert not browser.complaints()


def failed_run(tmp_path: Path, monkeypatch: Patch) -> RunTimeline:
    timeline = Recording(tmp_path, monkeypatch).read()
    monkeypatch.setattr(
        RunTimeline, "gone", lambda _: [Gone("main", "failed: AssertionError", 1.0)]
    )
    return timeline


def test_a_failed_run_has_its_failure(tmp_path: Path, monkeypatch: Patch) -> None:
    run = data_of(page(failed_run(tmp_path, monkeypatch)))["run"]
    assert (run["failures"], run["conditions"]) == (["failed: AssertionError"], [])


@needs_browser
def test_a_failed_run_says_so_first(browser: Browser, tmp_path: Path, monkeypatch: Patch) -> None:
    shown(browser, page(failed_run(tmp_path, monkeypatch)), tmp_path)
    assert browser.text("#run .facts").startswith("failed: AssertionError")
    assert "no reason for this failure" in browser.text("#findings")
    assert not browser.complaints()


@needs_browser
def test_many_storages_open_quickly(browser: Browser, tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    for number in range(6000):
        storage = run.storage(f"cuda:{number % 3}", 1000 + number, f"layer.{number}.weight")
        run.did(Did.CREATE, storage, at=number / 100, op="empty")
        if number % 2:
            run.did(Did.FREE, storage, at=number / 100 + 0.005, site=NOWHERE)
    text = page(run.read())
    assert len(text) < 2_000_000
    shown(browser, text, tmp_path)
    assert "Shown are 4,000 of 6,000 storages" in browser.text("#storages .lead")
    took = browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < took < 5000


@needs_browser
def test_a_lane_of_very_many_storages_is_folded(
    browser: Browser, tmp_path: Path, monkeypatch: Patch
) -> None:
    run = Recording(tmp_path, monkeypatch)
    for number in range(500):
        storage = run.storage("cuda:0", 1000, f"model.{number}.up.weight")
        run.did(Did.CREATE, storage, at=number / 100, op="empty")
    shown(browser, page(run.read()), tmp_path)
    browser.run("document.querySelector('canvas').scrollIntoView({behavior: 'instant'})")
    script = """const box = document.querySelector('canvas').getBoundingClientRect();
        return [box.left, box.top, box.width, box.height]"""
    left, top, width, height = browser.run(script)
    assert height < 60, "one row: they differ by the number of their layer"
    browser.click_at(int(left + width / 2), int(top + 20))
    assert browser.text("#matches") == "500 of 500 storages match “model. .up.weight”"
    assert not browser.complaints()


def test_errors_at_a_finding_are_told_with_it(tmp_path: Path, monkeypatch: Patch) -> None:
    told = data_of(page(small_run(tmp_path, monkeypatch), [finding()]))["troubles"]
    assert [each["finding"] for each in told if each["did"] == "error"] == [0]
    (tmp_path / "again").mkdir()
    alone = data_of(page(small_run(tmp_path / "again", monkeypatch)))["troubles"]
    assert {each["finding"] for each in alone} == {-1}


def test_time_begins_with_the_first_event(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    run.did(Did.CREATE, run.storage("cpu", 8, "model.weight"), at=30.0, op="empty")
    run.did(Did.CREATE, run.storage("cpu", 8, "model.bias"), at=31.5, op="empty")
    data = data_of(page(run.read()))
    assert data["run"]["seconds"] == 1.5
    assert [row[8] for row in data["storages"]] == [0.0, 1.5]
