"""The metrics of one operator in one epoch, and the metric group of user functions.

Promises: what an epoch counts is reported once, by the accepted attempt: values of counters, distributions and
accumulators are those that the epoch added.
Does not know: reporters, registries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.errors import UserError
from millstream.job import metrics as model
from millstream.job.accumulators import Accumulator, AccumulatorNameTaken
from millstream.runtime.value_text import to_text

MOST_SAMPLES = 5  # in one epoch of one subtask


class GaugeFailed(UserError):
    """A gauge of a user function raised, or did not return a number."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(
            f"gauge '{name}' {reason}", hint="a gauge is a function without arguments that returns a number"
        )


class Metrics:
    """Named counts; `take` returns and resets them."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.gauges: dict[str, Callable[[], int]] = {}
        self.distributions: dict[str, dict[str, int]] = {}
        self.accumulators: dict[str, Accumulator[Any, Any]] = {}
        self._samples: list[tuple[str, str | None, str]] = []

    def sample(self, reason: str, value: Any, key: Any = None) -> None:
        """Keep a record that is dropped, unless this epoch has enough of them."""
        if len(self._samples) < MOST_SAMPLES:
            self._samples.append((reason, None if key is None else to_text(key), to_text(value)))

    def take_samples(self) -> list[tuple[str, str | None, str]]:
        """Return the dropped records that were kept since the last call."""
        samples, self._samples = self._samples, []
        return samples

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter."""
        self.counts[name] = self.counts.get(name, 0) + amount

    def take(self) -> dict[str, Any]:
        """Return what was counted since the last call."""
        values_by_name: dict[str, Any] = dict(self.counts)
        self.counts.clear()
        for name, gauge in self.gauges.items():
            values_by_name[f"gauge.{name}"] = _read_gauge(name, gauge)
        for name, values in self.distributions.items():
            if values:
                values_by_name[f"distribution.{name}"] = dict(values)
                values.clear()
        return values_by_name

    def take_accumulators(self) -> dict[str, Accumulator[Any, Any]]:
        """Return what was added to accumulators since the last call."""
        accumulators = {name: accumulator.clone() for name, accumulator in self.accumulators.items()}
        self._reset_accumulators()
        return accumulators

    def forget(self) -> None:
        """Reset all: the attempt failed."""
        self.counts.clear()
        self._samples.clear()
        for values in self.distributions.values():
            values.clear()
        self._reset_accumulators()

    def _reset_accumulators(self) -> None:
        for accumulator in self.accumulators.values():
            accumulator.reset_local()

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator under its name."""
        if name in self.accumulators:
            raise AccumulatorNameTaken(name)
        self.accumulators[name] = accumulator


def _read_gauge(name: str, gauge: Callable[[], int]) -> Any:
    try:
        value = gauge()
    except Exception as problem:
        raise GaugeFailed(name, f"raised {type(problem).__name__}: {problem}") from problem
    if not isinstance(value, int | float):
        raise GaugeFailed(name, f"returned {value!r}, which is not a number")
    return value


def combine_values(first: Any, second: Any) -> Any:
    """Combine what two subtasks, or two epochs, counted under one name."""
    if isinstance(first, dict) and isinstance(second, dict):
        combined = {**first, **second}
        for name in first.keys() & second.keys():
            function: Any = {"min": min, "max": max}.get(name, _plus)
            combined[name] = function(first[name], second[name])
        return combined
    return first + second


def _plus(first: int, second: int) -> int:
    return first + second


class Counter(model.Counter):
    """A counter of a user function."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics, self._name, self._total = metrics, name, 0

    def inc(self, n: int = 1) -> None:
        """Add n."""
        self._total += n
        self._metrics.count(self._name, n)

    def dec(self, n: int = 1) -> None:
        """Subtract n."""
        self.inc(-n)

    def get_count(self) -> int:
        """Return what this worker has counted so far."""
        return self._total


class Meter(model.Meter):
    """Counts events; the rate is derived where metrics are reported."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._counter = Counter(metrics, name)

    def mark_event(self, value: int = 1) -> None:
        """Count events."""
        self._counter.inc(value)

    def get_count(self) -> int:
        """Return what this worker has counted so far."""
        return self._counter.get_count()


class Distribution(model.Distribution):
    """Count, sum, minimum and maximum of the values."""

    def __init__(self, values: dict[str, int]) -> None:
        self._values = values

    def update(self, value: int) -> None:
        """Add one value."""
        values = self._values
        values["count"] = values.get("count", 0) + 1
        values["sum"] = values.get("sum", 0) + value
        values["min"] = min(values.get("min", value), value)
        values["max"] = max(values.get("max", value), value)


class UserMetrics(model.MetricGroup):
    """The metric group of a user function: names are prefixed by their groups."""

    def __init__(self, metrics: Metrics, prefix: str = "user.") -> None:
        self._metrics, self._prefix = metrics, prefix

    def add_group(self, name: str, extra: str | None = None) -> UserMetrics:
        """Return a group inside this one."""
        return UserMetrics(self._metrics, f"{self._prefix}{name}." + (f"{extra}." if extra else ""))

    def counter(self, name: str) -> Counter:
        """Return a counter."""
        return Counter(self._metrics, self._prefix + name)

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        """Register a function whose value is read at the end of every epoch."""
        self._metrics.gauges[self._prefix + name] = obj

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Return a meter."""
        return Meter(self._metrics, self._prefix + name)

    def distribution(self, name: str) -> Distribution:
        """Return a distribution."""
        return Distribution(self._metrics.distributions.setdefault(self._prefix + name, {}))
