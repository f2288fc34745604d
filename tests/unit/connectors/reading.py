"""Drives a source as a job does: plan, read, and sometimes start again from a snapshot or a logged plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from millstream.connector.source import Budget, ReaderContext, Source, SplitEnumerator, SplitRange

MANY = 1 << 40


def budgets(records: int = MANY, size: int = MANY, step: int = 0) -> Iterator[Budget]:
    """The same budget again and again, `step` milliseconds apart."""
    now = 0
    while True:
        yield Budget(records, size, now)
        now += step


def values(source: Source, part: SplitRange, block: int = 1000) -> list[Any]:
    found: list[Any] = []
    for records in source.create_reader(ReaderContext(0, 1, block)).read(part):
        is_array = isinstance(records.values, pa.Array)
        assert 0 < len(records.values) <= block
        found += source.type_info().from_arrow(records.values) if is_array else records.values
    return found


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def everything(
    source: Source,
    parallelism: int = 1,
    *,
    records: int = MANY,
    size: int = MANY,
    block: int = 1000,
    between: Callable[[SplitEnumerator], SplitEnumerator] = lambda same: same,
    epochs: int = 100_000,
) -> list[Any]:
    """All records in the order in which they were planned."""
    enumerator = source.create_enumerator(parallelism)
    found: list[Any] = []
    for _, budget in zip(range(epochs), budgets(records, size)):
        ranges = enumerator.plan(budget)
        assert len({part.split for part in ranges}) == len(ranges)
        for part in ranges:
            found += values(source, SplitRange.from_json(through_json(part.to_json())), block)
        if enumerator.finished():
            return found
        enumerator = between(enumerator)
    raise AssertionError("the source does not end")


def restarting(source: Source, parallelism: int) -> Callable[[SplitEnumerator], SplitEnumerator]:
    """Start again from a snapshot, as after a failure, perhaps with another parallelism."""

    def again(enumerator: SplitEnumerator) -> SplitEnumerator:
        return source.create_enumerator(parallelism, through_json(enumerator.snapshot()))

    return again


def replaying(source: Source, parallelism: int, epochs: int, records: int = MANY, size: int = MANY) -> SplitEnumerator:
    """An enumerator that was moved past `epochs` logged plans, from the beginning, without planning them."""
    first, second = source.create_enumerator(parallelism), source.create_enumerator(parallelism)
    for _, budget in zip(range(epochs), budgets(records, size)):
        logged = [through_json(part.to_json()) for part in first.plan(budget)]
        second.replayed([SplitRange.from_json(data) for data in logged])
    return second
