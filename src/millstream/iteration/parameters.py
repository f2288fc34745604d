"""Iterations with shared parameters, whose workers may run ahead of one another: bounded staleness (SSP).

Promises: which updates a worker has seen in a round follows from the staleness alone. So laws 1 to 4 hold: neither the
parallelism nor a failure changes the parameters.
Does not know: what workers compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument
from millstream.functions import ParameterFunction, as_function
from millstream.graph.transformations import Input
from millstream.iteration.construction import Construction
from millstream.iteration.termination import Termination
from millstream.runtime.keys import KeySelection
from millstream.runtime.loops import Until
from millstream.runtime.operators.parameters import (
    EXCHANGED,
    INITIAL,
    PARAMETERS,
    RECORDS,
    UPDATES,
    ParameterSpec,
    WorkerSpec,
)
from millstream.runtime.partitioners import Broadcast, Hash
from millstream.state.key_groups import MIN_DEFAULT_MAX_PARALLELISM, key_group, stable_hash
from millstream.types.factory import Types

DEFAULT_WORKERS = 8


@dataclass(frozen=True)
class _WorkerOf:
    """Returns the number of the worker of a record; `numbers` are in key groups that are as far apart as possible."""

    key: Callable[[Any], Any] | None
    numbers: tuple[int, ...]

    def __call__(self, record: Any) -> int:
        value = record if self.key is None else self.key(record)
        return self.numbers[stable_hash(value) % len(self.numbers)]


def iterate_parameters(
    data: DataStream[Any],
    parameters: DataStream[Any],
    function: ParameterFunction[Any, Any, Any, Any],
    termination: Termination | int | None = None,
    *,
    staleness: int = 0,
    key: Callable[[Any], Any] | None = None,
    workers: int = DEFAULT_WORKERS,
    until: tuple[str, float] | None = None,
    name: str | None = None,
) -> DataStream[Any]:
    """Learn parameters that are shared by workers, round by round, and return the stream of the parameters at the end.

    Parameters are keyed state; those that changed are broadcast to the copies of all workers. With a staleness of *s*,
    workers exchange updates after every *s* + 1 rounds only, which saves *s* of *s* + 1 exchanges. In between, a worker
    sees its own updates. With a staleness of 0, a round is a bulk-synchronous one.

    Args:
        data: A bounded stream of the records of workers.
        parameters: A bounded stream of the initial parameters, as tuples (key, value); of several with one key the last
            is kept.
        function: Computes updates and applies them; see `ParameterFunction`.
        termination: The number of rounds, or a `Termination`. The iteration also ends when no worker has an update.
        staleness: The largest number of rounds by which a worker may be ahead of what it knows of the others.
        key: A function of the record; records with the same key have the same worker. By default the whole record.
        workers: The number of workers, which the parallelism does not change. It should be at least the parallelism.
        until: The name of a reported aggregate and a threshold: the iteration ends after an exchange at which the
            aggregate of the last round is at most the threshold.
        name: The name of the iteration, unique in the program.

    Returns:
        The stream of (key, value) of all parameters.

    Raises:
        InvalidArgument: Nothing terminates the iteration, or the staleness or the number of workers cannot be used.

    """
    _check("staleness", staleness, 0)
    _check("workers", workers, 1)
    update: Any = as_function(function, ParameterFunction)
    construction = Construction(parameters, name, bounded=True)
    env, parameter_type = construction.env, parameters.get_type()
    numbers = _worker_numbers(workers)
    worker = KeySelection(Types.LONG(), selector=_WorkerOf(key, numbers))
    by_key = parameters.key_by(0)
    parameter_key = by_key._key_selection()
    assert parameter_key is not None
    exchanged = construction.variable(parameters)
    update_type = Types.TUPLE([parameter_key.key_type, Types.LONG(), Types.LONG(), Types.PICKLED_BYTE_ARRAY()])
    step = env._program.add(
        "Workers",
        WorkerSpec(update, worker, numbers, parameter_type),
        update_type,
        (
            *(replace(edge, side=RECORDS, partitioner=Hash(worker)) for edge in data._inputs),
            *(replace(edge, side=EXCHANGED, partitioner=Broadcast()) for edge in exchanged._inputs),
        ),
        key_type=Types.LONG(),
    )
    updates = env._stream(step).key_by(0)
    server = env._program.add(
        "Parameters",
        ParameterSpec(update, parameter_key, parameter_type),
        parameter_type,
        (
            *(replace(edge, side=INITIAL) for edge in by_key._inputs),
            *(replace(edge, side=UPDATES) for edge in updates._inputs),
        ),
        **by_key._keyed(),
    )
    construction.feed_back((env._stream(server),))
    env._program.declare_side(server, PARAMETERS, parameter_type)
    loop = replace(construction.loop, staleness=staleness)
    if until is not None:
        loop = replace(loop, until=Until(*until))
    construction.configure(Termination.of(termination).configure(loop, has_criterion=until is not None))
    return DataStream(env, (Input(server, tag=PARAMETERS),))


def _check(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name} is {value!r}"
        raise InvalidArgument(msg, hint=f"use an int of at least {least}")


def _worker_numbers(count: int) -> tuple[int, ...]:
    """Return a different number for each worker; up to 128 of them are spread evenly over the key groups."""
    groups = MIN_DEFAULT_MAX_PARALLELISM
    if count > groups:
        return tuple(range(count))
    first: dict[int, int] = {}
    number = 0
    while len(first) < groups:
        first.setdefault(key_group(number, groups), number)
        number += 1
    return tuple(first[worker * groups // count] for worker in range(count))
