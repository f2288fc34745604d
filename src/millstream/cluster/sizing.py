"""How much an epoch should read: backpressure as planning.

Promises: the next budget follows from what the last epochs cost, within its bounds. It shrinks at most to a quarter at
a time, and grows at most twofold, or as far as the target is away even if all of the last epoch's time went into its
records, up to eightfold. What an epoch costs whatever it reads is not blamed on its records. After an epoch that was
too large, no epoch is larger than a quarter of it for a while, which is longer after each such epoch.
Does not know: sources, clocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

_WEIGHT = 0.3  # of the newest epoch in the averages
_FIXED = 0.05  # seconds an epoch costs, as long as nothing better is known
_LEAST = 1_000
_GROWTH = 2, 8
_CUT = 4  # how many times smaller an epoch is planned again that was too large
_PATIENCE = 16, 1 << 12  # accepted epochs before a limit is doubled: after the first epoch that was too large, at most


@dataclass(frozen=True)
class EpochSize:
    """The record budget of the next epoch, from a line through the sizes and times of the last ones."""

    target: float
    most: int | None = None
    records: int = 20_000
    mean_records: float = 0.0
    mean_seconds: float = 0.0
    variance: float = 0.0
    covariance: float = 0.0
    limit: int | None = None
    patience: int = 0
    accepted: int = 0  # epochs since the limit was set

    def too_large(self, records: int | None) -> EpochSize:
        """The size after an epoch that read `records`, if that is known, and was too large."""
        limit = max(1, min(self.budget, records or self.budget) // _CUT)
        patience = min(max(2 * self.patience, _PATIENCE[0]), _PATIENCE[1])
        return replace(self, limit=limit, patience=patience, accepted=0)

    def after(self, records: int, seconds: float) -> EpochSize:
        """The size after an epoch that read `records` in `seconds`."""
        if records <= 0:
            return self
        if self.limit is not None and self.accepted >= self.patience:
            return replace(self, limit=2 * self.limit, accepted=0).after(records, seconds)
        learned = self._learn(records, seconds)
        per_record, fixed = learned._cost()
        wanted = int(max(self.target - fixed, self.target / 4) / per_record)
        if records < self.records // 2:  # the source gave less than it was asked for: no evidence for more
            wanted = min(wanted, self.records)
        growth = min(max(self.target / max(seconds, 1e-3), _GROWTH[0]), _GROWTH[1])
        most = max(self.records * _GROWTH[0], int(min(records, self.records) * growth))
        bounded = min(max(wanted, self.records // 4), most)
        return replace(learned, records=max(bounded, _LEAST), accepted=self.accepted + 1)

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
        """Seconds per record, and per epoch."""
        average = self.mean_seconds / self.mean_records
        if self.variance > (self.mean_records / 20) ** 2 and self.covariance > 0:
            per_record = min(max(self.covariance / self.variance, average / 10), average)
        else:
            per_record = max(self.mean_seconds - _FIXED, self.mean_seconds / 10) / self.mean_records
        per_record = max(per_record, 1e-9)
        return per_record, max(0.0, self.mean_seconds - per_record * self.mean_records)

    @property
    def budget(self) -> int:
        """Records to ask for."""
        return min(limit for limit in (self.records, self.most, self.limit) if limit is not None)
