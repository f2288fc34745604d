"""Splits of a scan, which are read in parallel, each range by range.

Promises: the layout is decided once and is part of every range, so that a replay reads the same ranges; each unit (a
value of the partition column, a block of the table) is in one range.
Does not know: connections, SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from millstream.connector.source import Budget, SplitEnumerator, SplitRange


@dataclass(frozen=True, slots=True)
class Layout:
    """Units from `lower` to before `upper`, over `partitions` splits. `nulls`: rows without a unit come first."""

    unit: str
    lower: int
    upper: int
    partitions: int
    rows: int
    nulls: bool = False

    def bounds(self) -> list[tuple[int, int]]:
        """Return the begin and the end of each split."""
        width, count = self.upper - self.lower, max(self.partitions, 1)
        edges = [self.lower + width * number // count for number in range(count + 1)]
        return [(start, end) for start, end in pairwise(edges) if start < end]

    def units_for(self, records: int) -> int:
        """Return how many units have about this many rows."""
        if self.unit not in ("column", "block") or self.rows <= 0:
            return 1 if self.unit == "parameters" else max(self.upper - self.lower, 1)
        return max(records * (self.upper - self.lower) // self.rows, 1)

    def to_json(self) -> dict[str, Any]:
        """The layout as a JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layout:
        """The inverse of `to_json`."""
        return cls(**data)


class ScanEnumerator(SplitEnumerator):
    """Plans ranges of units."""

    def __init__(self, look: Callable[[], Layout], state: Any = None) -> None:
        """`look` asks the database for the layout; it is called at the first plan, unless the layout is restored."""
        self._look = look
        self._layout: Layout | None = None
        self._at: dict[str, int] = {}
        if state is not None:
            self._adopt(Layout.from_json(state["layout"]))
            self._at.update(state["at"])

    def _adopt(self, layout: Layout) -> None:
        self._layout = layout
        self._at = {str(number): start for number, (start, _) in enumerate(layout.bounds())}

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan a range of each split, with its share of the budget."""
        layout = self._known()
        share = max(budget.records // max(len(self.splits()), 1), 1)
        step = layout.units_for(share)
        planned: list[SplitRange] = []
        for split in self.splits():
            if split in budget.held:
                continue
            start, last = self._at[split], layout.bounds()[int(split)][1]
            end = min(start + step, last)
            self._at[split] = end
            planned.append(SplitRange(split, start, [end, layout.to_json()], share))
        return planned

    def _known(self) -> Layout:
        if self._layout is None:
            self._adopt(self._look())
        assert self._layout is not None
        return self._layout

    def snapshot(self) -> Any:
        """Return the layout and the offset of each split; None before the first plan."""
        return None if self._layout is None else {"layout": self._layout.to_json(), "at": dict(self._at)}

    def splits(self) -> list[str]:
        """Return the unfinished splits."""
        bounds = self._known().bounds()
        return [split for split, at in self._at.items() if at < bounds[int(split)][1]]

    def finished(self) -> bool:
        """Whether all splits are read."""
        return not self.splits()

    def skip(self, done: SplitRange) -> None:
        """Continue after a range, in its layout."""
        end, layout = done.end
        if self._layout is None:
            self._adopt(Layout.from_json(layout))
        self._at[done.split] = end

    def lag(self) -> int | None:
        """Return the number of rows left, by the estimate of the database."""
        layout = self._layout
        if layout is None or not layout.rows:
            return None
        left = sum(end - self._at[str(number)] for number, (_, end) in enumerate(layout.bounds()))
        return layout.rows * left // max(layout.upper - layout.lower, 1)
