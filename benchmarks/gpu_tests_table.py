"""The tables of `docs/guides/gpu-tests.md`, from what was measured and how its failures read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
GUIDE = HERE.parent / "docs" / "guides" / "gpu-tests.md"
RESULTS = HERE / "gpu_tests.json"
COST = HERE / "gpu_tests_cost.json"
READ = HERE / "gpu_tests_read.jsonl"
BEGIN, END = "<!-- written by benchmarks.gpu_tests -->", "<!-- end -->"
OURS = "rehearsal"
UNREAD = "not read yet"
HEAD = (
    "| project | tests | skipped on a CPU | of these passed | need a GPU | other skips "
    "| failed | failed because of the rehearsal, of all | seconds |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)
DOLLARS_A_MINUTE = 0.008
"""An assumption: what a small Linux machine of a CI service costs."""
Found = Mapping[str, Any]


class Reading(NamedTuple):
    """Why a test failed."""

    project: str
    test: str
    """A name as `fnmatch` takes it."""
    whose: str
    """project, environment or rehearsal."""
    why: str

    def fits(self, project: str, test: str) -> bool:
        return project == self.project and fnmatchcase(test, self.test.replace("[", "[[]"))


def results() -> dict[str, Any]:
    if not RESULTS.is_file():
        return {}
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def readings() -> list[Reading]:
    lines = READ.read_text(encoding="utf-8").splitlines()
    return [Reading(**json.loads(line)) for line in lines if line]


def reading_of(project: str, test: str) -> Reading:
    unread = Reading(project, test, UNREAD, "")
    return next((each for each in readings() if each.fits(project, test)), unread)


def through_us(project: str, found: Found) -> int:
    wanted = (OURS, UNREAD)
    return sum(reading_of(project, name).whose in wanted for name, *_ in found["failures"])


def row(project: str, found: Found) -> str:
    cells = [
        f"{project} {found['state']}", found["tests"], found["skipped_by_a_cpu"],
        found["passed"], found["lacking"], found["skipped"], found["failed"],
        through_us(project, found), "{}, {}".format(*found["seconds"]),
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def total(all_found: Mapping[str, Found]) -> str:
    names = ("tests", "skipped_by_a_cpu", "passed", "lacking", "skipped", "failed")
    sums = [sum(found[name] for found in all_found.values()) for name in names]
    ours = sum(through_us(project, found) for project, found in all_found.items())
    share = f"{ours} ({100 * ours / max(1, sums[0]):.1f} %)"
    return "| all | " + " | ".join(map(str, sums)) + f" | {share} | |"


def in_ci(all_found: Mapping[str, Found]) -> str:
    plain, rehearsed = (sum(found["seconds"][i] for found in all_found.values()) for i in (0, 1))
    tests = sum(found["tests"] for found in all_found.values())
    cost = rehearsed / 60 * DOLLARS_A_MINUTE
    return (
        f"In CI: the {tests} tests take {plain / 60:.0f} minutes plainly and {rehearsed / 60:.0f} "
        f"minutes rehearsed; {share_run(all_found)} % of them run in a rehearsal. At "
        f"{DOLLARS_A_MINUTE} $ a minute for a machine with two cores, a run of all projects costs "
        f"{cost:.2f} $. Such machines are free for public repositories."
    )


def share_run(all_found: Mapping[str, Found]) -> int:
    tests, lacking, skipped = (
        sum(found[name] for found in all_found.values()) for name in ("tests", "lacking", "skipped")
    )
    return round(100 * (tests - lacking - skipped) / max(1, tests))


def failures(all_found: Mapping[str, Found]) -> Iterator[str]:
    """Of each reading, how many tests failed so."""
    count: dict[Reading, int] = {}
    for project, found in sorted(all_found.items()):
        for name, *_ in found["failures"]:
            reading = reading_of(project, name)
            count[reading] = count.get(reading, 0) + 1
    for reading, number in count.items():
        name = reading.test.rpartition("::")[2].strip("*") or reading.test
        yield f"| {reading.project} | {number} | `{name}` | {reading.whose} | {reading.why} |"


def lacks(all_found: Mapping[str, Found]) -> Iterator[str]:
    for project, found in sorted(all_found.items()):
        for reason, number in list(found["reasons"].items())[:5]:
            yield f"| {project} | {number} | {reason.replace('|', '/')} |"


def tables() -> str:
    found = dict(sorted(results().items()))
    versions = ", ".join(sorted({f"torch {each['torch']}" for each in found.values()}))
    devices = ", ".join(sorted({each["devices"] for each in found.values()}))
    parts = [
        f"{versions}, `--rehearse {devices}`. Seconds are those of the whole command, plain and "
        "rehearsed, on two cores shared with other programs.",
        "\n".join([HEAD, *(row(project, each) for project, each in found.items()), total(found)]),
        in_ci(found),
    ]
    if rows := list(failures(found)):
        head = "| project | tests | which | due to | why |\n| --- | --- | --- | --- | --- |"
        parts += ["Failures that only the rehearsed run has:", "\n".join([head, *rows])]
    if rows := list(lacks(found)):
        head = "| project | tests | reason |\n| --- | --- | --- |"
        parts += ["The most frequent reasons for skips:", "\n".join([head, *rows])]
    return "\n\n".join([*parts, *costs()])


def costs() -> Iterator[str]:
    if not COST.is_file():
        return
    head = (
        "| project | tests | plain, s | rehearsed, s | ratio | start, s |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    found = json.loads(COST.read_text(encoding="utf-8"))
    rows = [
        f"| {project} | {each['tests']} | {each['plain']:.1f} | {each['rehearsed']:.1f} | "
        f"{each['ratio']:.2f} | {each['start']:.1f} |"
        for project, each in sorted(found.items())
    ]
    yield (
        "The cost of a rehearsal in seconds of processor time, for tests that pass on a CPU, "
        "including the start:"
    )
    yield "\n".join([head, *rows])


def write_guide() -> None:
    before, _, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    GUIDE.write_text(f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}", encoding="utf-8")
