"""How many mistakes of each kind were made, what their rehearsals said, and how many were found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

Reported = tuple[str, str]
"""The code of a finding, and how `check` reports it: as one of the following."""
SELECTED, NOTE, LOUD = "if selected", "note", "error or warning"
Chosen = Callable[[str, str], bool]
EQUIVALENT, FAILS, NOT_RUN = "equivalent", "fails", "not run"


class Tally:
    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self.proven: Counter[str] = Counter()
        """Why mistakes were left out that the text proves to change nothing."""
        self._made: Counter[tuple[str, str]] = Counter()
        self._found: Counter[tuple[str, str]] = Counter()
        self._by_default: Counter[tuple[str, str]] = Counter()
        self._loud: Counter[tuple[str, str]] = Counter()
        self._not_run: Counter[str] = Counter()

    def add(self, kind: str, ran: str, new: set[Reported]) -> None:
        """`ran` is the word of the rehearsal and what it said; "" if there was none."""
        word, _, why = ran.partition(": ")
        self._made[kind, word] += 1
        self._found[kind, word] += bool(new)
        self._by_default[kind, word] += any(how != SELECTED for _, how in new)
        self._loud[kind, word] += any(how == LOUD for _, how in new)
        if word == NOT_RUN:
            self._not_run[why.partition(":")[0]] += 1

    def left_aside(self, ran: str) -> None:
        """One that is in none of the counts, but told of if its rehearsal could not run."""
        if ran:
            self._not_run[ran.partition(": ")[2].partition(":")[0]] += 1

    @property
    def so_far(self) -> str:
        return f"{self._found.total()} of {self._made.total()}"

    def show(self) -> None:
        for kind in self._kinds:
            self._line(kind, lambda of, word, k=kind: of == k and word != EQUIVALENT)
        of_device = self._kinds[:2]
        self._line("all device=", lambda of, word: of in of_device and word != EQUIVALENT)
        self._line("all others", lambda of, word: of not in of_device and word != EQUIVALENT)
        whys = ", ".join(f"{count} {why}" for why, count in self.proven.most_common())
        print(f"{self.proven.total()} left out as equivalent by proof{whys and ': '}{whys}")
        if any(word for _, word in self._made):
            self._show_rehearsed()

    def _show_rehearsed(self) -> None:
        counts: Counter[str] = Counter()
        for (_, word), count in self._made.items():
            counts[word] += count
        print(f"{counts.total() - counts['']} rehearsed, of these")
        for word in sorted(counts.keys() - {""}):
            self._line(f"  {word}", lambda _, said, w=word: said == w)
        for why, count in self._not_run.most_common():
            print(f"    {count:4} {why}")
        print(f"{counts[EQUIVALENT]} left out as equivalent in their runs; of what fails there")
        for kind in self._kinds:
            self._line(f"  {kind}", lambda of, word, k=kind: of == k and word == FAILS)

    def _line(self, title: str, chosen: Chosen) -> None:
        made, found, shown, loud = (
            sum(count for key, count in each.items() if chosen(*key))
            for each in (self._made, self._found, self._by_default, self._loud)
        )
        share, default, failing = (100 * each / max(made, 1) for each in (found, shown, loud))
        print(
            f"{title:26} {found:4} of {made:4}  {share:5.1f} %  {default:5.1f} % by default, "
            f"{failing:5.1f} % as errors and warnings"
        )
