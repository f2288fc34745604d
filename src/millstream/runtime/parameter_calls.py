"""Calls functions of shared parameters: the rounds of workers, and the application of their updates.

Promises: a worker sees the parameters of the last exchange and its own updates since then. Updates are applied by
round, and those of a round in the order of the workers. A failure names the worker and the round, or the parameter.
Does not know: state, epochs, how updates travel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.functions.parameters import ParameterFunction, WorkerContext
from millstream.runtime import rowwise
from millstream.runtime.loops import KINDS, LoopReport, combine
from millstream.runtime.operator import OperatorContext

Update = tuple[Any, int, int, Any]  # the key of a parameter, round, worker, and the update


class Parameters(Mapping[Any, Any]):
    """Parameters as one worker sees them: those of the last exchange, and over them what it has applied itself."""

    def __init__(self, exchanged: Mapping[Any, Any]) -> None:
        self._exchanged = exchanged
        self.applied: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        return self.applied[key] if key in self.applied else self._exchanged[key]

    def __iter__(self) -> Iterator[Any]:
        yield from self._exchanged
        yield from (key for key in self.applied if key not in self._exchanged)

    def __len__(self) -> int:
        return len(self._exchanged) + sum(key not in self._exchanged for key in self.applied)


class _Worker(WorkerContext):
    """One worker in one round."""

    def __init__(self, round_number: int, worker: int) -> None:
        self._round, self._worker = round_number, worker
        self.reported: dict[str, tuple[str, list[float]]] = {}

    @property
    def round(self) -> int:
        """The number of the round."""
        return self._round

    @property
    def worker(self) -> int:
        """The number of the worker."""
        return self._worker

    def report(self, name: str, value: float, kind: str = "sum") -> None:
        """Keep a number until the end of the round."""
        if kind not in KINDS:
            msg = f"'{kind}' is not an aggregate"
            raise InvalidArgument(msg, hint=f"use one of {', '.join(KINDS)}")
        self.reported.setdefault(name, (kind, []))[1].append(float(value))


def run_rounds(
    context: OperatorContext,
    function: ParameterFunction[Any, Any, Any, Any],
    workers: Mapping[int, Sequence[Any]],
    exchanged: Mapping[Any, Any],
    rounds: range,
    copy: Callable[[Any], Any] | None,
) -> list[Update]:
    """Run some rounds of each worker without an exchange, and return the updates. The aggregates of the last round are
    reported. `copy` copies a parameter, because a function may change the value that it gets to apply."""
    updates: list[Update] = []
    reported: dict[str, tuple[str, list[float]]] = {}
    for worker, records in sorted(workers.items()):
        seen = Parameters(exchanged)
        for number in rounds:
            call = _Worker(number, worker)
            where = f"worker {worker}, round {number}"
            computed = rowwise.call_user_code(context, _compute, function, records, seen, call, key=where)
            updates += [(key, number, worker, update) for key, update in computed.items()]
            if number == rounds[-1]:
                for name, (kind, values) in call.reported.items():
                    reported.setdefault(name, (kind, []))[1].extend(values)
            else:
                rowwise.call_user_code(context, _apply_own, function, seen, computed, copy, key=where)
    report = context.memory.part(LoopReport)
    report.aggregates = {}
    for name, (kind, values) in reported.items():
        report.put(name, kind, combine(kind, values))
    return updates


def _compute(
    function: ParameterFunction[Any, Any, Any, Any], records: Sequence[Any], seen: Parameters, call: _Worker
) -> Mapping[Any, Any]:
    computed: Any = function.compute(records, seen, call)
    if not isinstance(computed, Mapping):
        msg = f"compute returned {rowwise.shorten(computed)}"
        raise InvalidArgumentType(msg, hint="return a dictionary of updates by the keys of parameters; it may be empty")
    return computed


def _apply_own(
    function: ParameterFunction[Any, Any, Any, Any],
    seen: Parameters,
    computed: Mapping[Any, Any],
    copy: Callable[[Any], Any] | None,
) -> None:
    for key, update in computed.items():
        value = seen.get(key)
        before = value if copy is None or value is None else copy(value)
        seen.applied[key] = function.apply(key, before, [update])


def apply_updates(
    context: OperatorContext,
    function: ParameterFunction[Any, Any, Any, Any],
    updates: Iterable[Update],
    parameters: Mapping[Any, Any],
) -> dict[Any, Any]:
    """Return the new values of the parameters that have updates, by key."""
    changed: dict[Any, Any] = {}
    by_key: dict[Any, list[Update]] = {}
    for update in updates:
        by_key.setdefault(update[0], []).append(update)
    for key, of_key in by_key.items():
        value = parameters.get(key)
        of_key.sort(key=itemgetter(1, 2))
        for _, of_round in groupby(of_key, key=itemgetter(1)):
            values = [update[3] for update in of_round]
            value = rowwise.call_user_code(context, function.apply, key, value, values, key=key)
        changed[key] = value
    return changed
