"""How a scan is cut: into splits that are read side by side, each range by range.

Promises: the cut is decided once and part of every range, so that a replay meets the ranges it began with; each unit (a
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
        """Where each split begins and ends."""
        width, count = self.upper - self.lower, max(self.partitions, 1)
        edges = [self.lower + width * number // count for number in range(count + 1)]
        return [(start, end) for start, end in pairwise(edges) if start < end]

    def units_for(self, records: int) -> int:
        """How many units have about so many rows."""
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
        """`look` asks the database; it is asked at the first plan, unless the cut is known by then."""
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
        """A range of each split, with its share of the records."""
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
        """The cut and how far each split is read; None before the first plan."""
        return None if self._layout is None else {"layout": self._layout.to_json(), "at": dict(self._at)}

    def splits(self) -> list[str]:
        """The splits that have something left."""
        bounds = self._known().bounds()
        return [split for split, at in self._at.items() if at < bounds[int(split)][1]]

    def finished(self) -> bool:
        """Whether all is read."""
        return not self.splits()

    def skip(self, done: SplitRange) -> None:
        """Move behind a range, in the cut it belongs to."""
        end, layout = done.end
        if self._layout is None:
            self._adopt(Layout.from_json(layout))
        self._at[done.split] = end

    def lag(self) -> int | None:
        """Rows that are left, as far as the database's estimate goes."""
        layout = self._layout
        if layout is None or not layout.rows:
            return None
        left = sum(end - self._at[str(number)] for number, (_, end) in enumerate(layout.bounds()))
        return layout.rows * left // max(layout.upper - layout.lower, 1)
