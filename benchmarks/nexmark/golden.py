"""What a Nexmark query leaves behind, as text that can be kept and compared.

Promises: the same text for the same rows, in whatever order they came; small results are kept whole, of large ones
their first rows, their number and a digest of all.
Does not know: engines."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.nexmark.generator import Nexmark

EVENTS, PATTERN_EVENTS = 4_000, 800
NEXMARK = Nexmark(seed=11, rate=100)  # ten milliseconds apart, so that no two events are at the same time
FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden" / "nexmark"
_WHOLE, _FIRST = 24_000, 12

# How the real Flink is asked where it cannot run a query as it is published, or answers by the clock.
ASKED = {
    "q12": "SELECT bidder, COUNT(*) FROM bid GROUP BY bidder",
    "q13": "SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value` FROM bid B JOIN side_input S "
    "ON MOD(B.auction, 10000) = S.key",
}
BATCH = frozenset({"q6"})
KEYS = {"q9": (0,), "q18": (0, 1), "q19": (0, 7)}  # Flink tells these as upserts: the columns of their keys
COUNT_CHAR = "CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', ''))"


def events(query: str) -> int:
    """How many events a query was recorded with: fewer for patterns, which remember long ways to a match."""
    return PATTERN_EVENTS if query.startswith("p") else EVENTS


def left(changelog: Iterable[Sequence[str]]) -> list[str]:
    """The rows that are there in the end, of rows with the kind of change first; one line each, in order."""
    counts: Counter[str] = Counter()
    for kind, *cells in changelog:
        counts["|".join(cells)] += 1 if kind in ("+I", "+U") else -1
    wrong = [line for line, count in counts.items() if count < 0]
    if wrong:
        message = f"taken back more often than told: {wrong[0]}"
        raise ValueError(message)
    return sorted(counts.elements())


def last_of_each(changelog: Iterable[Sequence[str]], key: Sequence[int]) -> list[Sequence[str]]:
    """What upserts by key leave, as inserts."""
    last: dict[tuple[str, ...], Sequence[str]] = {}
    for kind, *cells in changelog:
        place = tuple(cells[i] for i in key)
        if kind in ("+I", "+U"):
            last[place] = cells
        elif last.get(place) == cells:
            del last[place]
    return [("+I", *cells) for cells in last.values()]


def text_of(lines: Sequence[str]) -> str:
    """The text that is kept."""
    whole = "".join(f"{line}\n" for line in lines)
    head = f"# rows: {len(lines)}\n# sha256: {hashlib.sha256(whole.encode()).hexdigest()}\n"
    return head + (whole if len(whole) <= _WHOLE else "".join(f"{line}\n" for line in lines[:_FIRST]))
