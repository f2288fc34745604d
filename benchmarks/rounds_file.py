"""The finished rounds of a run as a file, so that a run that was interrupted goes on where it was.

Promises: one JSON line for each outcome, written as soon as it is known; a run goes on only at the same commit, on the
same machine, with the same versions and sizes, and otherwise starts again, with the older file kept beside it.
Does not know: what a contestant measures, or when a round counts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import Outcome

CHECK = 0  # the number of the "round" that checks the output


@dataclass(frozen=True, slots=True)
class Finished:
    """An outcome, with the round and the attempt at the round that it is of."""

    benchmark: str
    contestant: str
    round: int
    attempt: int
    outcome: Outcome


class RoundsFile:
    """The outcomes of one run. `header` says what the run is of."""

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self._path = path
        self.header = header
        self.finished: list[Finished] = []
        self.durations: dict[str, float] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        before = json.loads(lines[0]) if lines else None
        entries = [entry for line in lines[1:] if (entry := _read(line)) is not None]
        for entry in entries:
            self._note(entry)
        if before is not None and _essence(before) == _essence(header):
            self.header = before
            self.finished = entries
            path.write_text("".join(json.dumps(line) + "\n" for line in (before, *map(asdict, entries))))
            return
        if lines:
            path.rename(path.with_name(f"{path.stem}-{before['started'].replace(':', '')}{path.suffix}"))
        path.write_text(json.dumps(header) + "\n")

    def find(self, benchmark: str, contestant: str, number: int, attempt: int) -> Outcome | None:
        """Return an outcome that is known."""
        for entry in self.finished:
            key = (entry.benchmark, entry.contestant, entry.round, entry.attempt)
            if key == (benchmark, contestant, number, attempt) and entry.outcome.failure is None:
                return entry.outcome
        return None

    def add(self, entry: Finished) -> None:
        """Write an outcome."""
        self.finished.append(entry)
        self._note(entry)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(entry)) + "\n")

    def _note(self, entry: Finished) -> None:
        self.durations[f"{entry.benchmark}/{entry.contestant}/{min(entry.round, 1)}"] = entry.outcome.seconds

    def estimate(self, benchmark: str, contestant: str, number: int) -> float | None:
        """Return how long a contestant took before, or all of them on average; None if nothing is known."""
        known = self.durations.get(f"{benchmark}/{contestant}/{min(number, 1)}")
        if known is not None or not self.durations:
            return known
        return sum(self.durations.values()) / len(self.durations)


def _read(line: str) -> Finished | None:
    """Read an outcome; None if the line is half written, as the last one may be."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    return Finished(**{**values, "outcome": Outcome(**values["outcome"])})


def _essence(header: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.items() if key not in ("started", "load")}
