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
    """Units from `lower` (inclusive) to `upper` (exclusive), divided into `partitions` splits. With `nulls`, the first
    range includes rows whose partition column is NULL."""

    unit: str
    lower: int
    upper: int
    partitions: int
    rows: int
    nulls: bool = False

    def bounds(self) -> list[tuple[int, int]]:
        """Return the start and the end of each split."""
        width, count = self.upper - self.lower, max(self.partitions, 1)
        edges = [self.lower + width * number // count for number in range(count + 1)]
        return [(start, end) for start, end in pairwise(edges) if start < end]

    def units_for(self, records: int) -> int:
        """Return the number of units that hold about this many rows."""
        if self.unit not in ("column", "block") or self.rows <= 0:
            return 1 if self.unit == "parameters" else max(self.upper - self.lower, 1)
        return max(records * (self.upper - self.lower) // self.rows, 1)

    def to_json(self) -> dict[str, Any]:
        """Return the layout as a JSON value."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Layout:
        """Return the inverse of `to_json`."""
        return cls(**data)


class ScanEnumerator(SplitEnumerator):
    """Plans ranges of units."""

    def __init__(self, create_layout: Callable[[], Layout], state: Any = None) -> None:
        """`create_layout` reads the layout from the database, at the first plan, unless the layout is restored."""
        self._create_layout = create_layout
        self._layout: Layout | None = None
        self._offsets: dict[str, int] = {}
        if state is not None:
            self._set_layout(Layout.from_json(state["layout"]))
            self._offsets.update(state["at"])

    def _set_layout(self, layout: Layout) -> None:
        self._layout = layout
        self._offsets = {str(number): start for number, (start, _) in enumerate(layout.bounds())}

    def plan(self, budget: Budget) -> list[SplitRange]:
        """Plan a range of each split, with its share of the budget."""
        layout = self._get_layout()
        share = max(budget.records // max(len(self.splits()), 1), 1)
        step = layout.units_for(share)
        planned: list[SplitRange] = []
        for split in self.splits():
            if split in budget.held:
                continue
            start, last = self._offsets[split], layout.bounds()[int(split)][1]
            end = min(start + step, last)
            self._offsets[split] = end
            planned.append(SplitRange(split, start, [end, layout.to_json()], share))
        return planned

    def _get_layout(self) -> Layout:
        if self._layout is None:
            self._set_layout(self._create_layout())
        assert self._layout is not None
        return self._layout

    def snapshot(self) -> Any:
        """Return the layout and the offset of each split; None before the first plan."""
        return None if self._layout is None else {"layout": self._layout.to_json(), "at": dict(self._offsets)}

    def splits(self) -> list[str]:
        """Return the unfinished splits."""
        bounds = self._get_layout().bounds()
        return [split for split, offset in self._offsets.items() if offset < bounds[int(split)][1]]

    def finished(self) -> bool:
        """Whether all splits are read."""
        return not self.splits()

    def skip(self, split_range: SplitRange) -> None:
        """Continue after a range, in its layout."""
        end, layout = split_range.end
        if self._layout is None:
            self._set_layout(Layout.from_json(layout))
        self._offsets[split_range.split] = end

    def lag(self) -> int | None:
        """Return the number of rows left, by the estimate of the database."""
        layout = self._layout
        if layout is None or not layout.rows:
            return None
        units_left = sum(end - self._offsets[str(number)] for number, (_, end) in enumerate(layout.bounds()))
        return layout.rows * units_left // max(layout.upper - layout.lower, 1)
