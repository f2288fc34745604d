"""How much an epoch should read: backpressure as planning.

Promises: the next budget follows from what the last epochs cost; it grows at most twofold and shrinks at most to a
quarter at a time, within its bounds.
Does not know: sources, clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class EpochSize:
    """The record budget of the next epoch. `fixed` costs (an empty epoch) are not blamed on the records."""

    target: float
    most: int | None = None
    records: int = 20_000
    fixed: float = 0.05

    def after(self, records: int, seconds: float) -> EpochSize:
        """The size after an epoch that read `records` in `seconds`."""
        if records <= 0:
            return replace(self, fixed=min(self.fixed, seconds))
        per_record = max(seconds - self.fixed, 1e-9) / records
        wanted = int(max(self.target - self.fixed, self.target / 4) / per_record)
        if records < self.records // 2:  # the source gave less than it was asked for: no evidence for more
            wanted = min(wanted, self.records)
        return replace(self, records=max(min(max(wanted, self.records // 4), self.records * 2), 1_000))

    @property
    def budget(self) -> int:
        """Records to ask for."""
        return self.records if self.most is None else min(self.records, self.most)
