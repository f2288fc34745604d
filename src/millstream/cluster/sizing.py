"""Record budget of epochs: backpressure by planning.

Promises: the next budget follows from the cost of the last epochs, within bounds. It shrinks at most to a quarter at a
time. It grows at most twofold, or up to eightfold if the last epoch was that much shorter than the target. The fixed
cost of an epoch is not attributed to its records. After an epoch that was too large there is a limit: a quarter of that
epoch, or the last proven size. When enough epochs have succeeded at the limit, that size is proven and the limit is
doubled; it is removed when it has no effect. The number of epochs that is enough is doubled after a limit was raised
too early, and halved after each raise that succeeded. An epoch that read less than half of its budget does not count.
Does not know: sources, clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

_WEIGHT = 0.3  # the weight of the newest epoch in the averages
_FIXED = 0.05  # the assumed seconds of an epoch without records, until it is measured
_LEAST = 1_000
_GROWTH = 2, 8
_CUT = 4  # an epoch that was too large is planned again with its size divided by this
# the minimum and maximum of accepted epochs before a limit is raised, after an epoch was too large
_PATIENCE = 16, 1 << 12


@dataclass(frozen=True)
class EpochSize:
    """The record budget of the next epoch, from a linear regression of the times of the last epochs on their sizes."""

    target: float
    most: int | None = None
    records: int = 20_000
    mean_records: float = 0.0
    mean_seconds: float = 0.0
    variance: float = 0.0
    covariance: float = 0.0
    limit: int | None = None
    proven: int | None = None  # the limit before it was raised, or the one to which epochs were cut
    patience: int = 0
    accepted: int = 0  # epochs since the limit was set that read at least half of the budget

    def is_small(self, records: int | None) -> bool:
        """Return whether an epoch that read `records` of a source, if that is known, was at most as large as the proven
        size."""
        return self.proven is not None and (records or self.budget) <= self.proven

    def too_large(self, records: int | None) -> EpochSize:
        """Return the size after an epoch that read `records` of a source, if that is known, and was too large."""
        least, most = _PATIENCE
        if self.proven is not None and not self.is_small(records):
            limit, patience = self.proven, 2 * self.patience
        else:  # patience concerns raising the limit: an epoch that is cut several times says nothing about that
            limit, patience = max(1, (records or self.budget) // _CUT), self.patience
        return replace(self, limit=limit, proven=limit, patience=min(max(patience, least), most), accepted=0)

    def _raise_limit(self) -> EpochSize:
        """Return the size after enough epochs have succeeded at the limit, or without one."""
        if self.limit is None:
            patience = self.patience // 2
            return replace(self, patience=patience, proven=self.proven if patience else None, accepted=0)
        grown = self.proven is not None and self.limit > self.proven
        patience = max(1, self.patience // 2) if grown else self.patience
        limit = 2 * self.limit
        binds = limit < min(self.records, self.most or self.records)
        return replace(self, limit=limit if binds else None, proven=self.limit, patience=patience, accepted=0)

    def after(self, records: int, seconds: float) -> EpochSize:
        """Return the size after an epoch that read `records` in `seconds`."""
        if records <= 0:
            return self
        if self.patience and self.accepted >= self.patience:
            return self._raise_limit().after(records, seconds)
        learned = self._learn(records, seconds)
        per_record, fixed = learned._cost()
        records_for_target = int(max(self.target - fixed, self.target / 4) / per_record)
        # the source had fewer records than the budget, so nothing shows that a larger budget is right
        if records < self.records // 2:
            records_for_target = min(records_for_target, self.records)
        growth = min(max(self.target / max(seconds, 1e-3), _GROWTH[0]), _GROWTH[1])
        most = max(self.records * _GROWTH[0], int(min(records, self.records) * growth))
        bounded = min(max(records_for_target, self.records // 4), most)
        is_full = 2 * records >= self.budget  # a small epoch does not show that one at the limit succeeds
        return replace(learned, records=max(bounded, _LEAST), accepted=self.accepted + is_full)

    def _learn(self, records: int, seconds: float) -> EpochSize:
        if not self.mean_records:
            return replace(self, mean_records=float(records), mean_seconds=seconds)
        more, longer = records - self.mean_records, seconds - self.mean_seconds
        return replace(
            self,
            mean_records=self.mean_records + _WEIGHT * more,
            mean_seconds=self.mean_seconds + _WEIGHT * longer,
            variance=(1 - _WEIGHT) * (self.variance + _WEIGHT * more * more),
            covariance=(1 - _WEIGHT) * (self.covariance + _WEIGHT * more * longer),
        )

    def _cost(self) -> tuple[float, float]:
        """Return the seconds per record, and per epoch."""
        average = self.mean_seconds / self.mean_records
        if self.variance > (self.mean_records / 20) ** 2 and self.covariance > 0:
            per_record = min(max(self.covariance / self.variance, average / 10), average)
        else:
            per_record = max(self.mean_seconds - _FIXED, self.mean_seconds / 10) / self.mean_records
        per_record = max(per_record, 1e-9)
        return per_record, max(0.0, self.mean_seconds - per_record * self.mean_records)

    @property
    def budget(self) -> int:
        """The record budget of the next epoch."""
        return min(limit for limit in (self.records, self.most, self.limit) if limit is not None)
