"""Bulk iterations: a step function computes the next data set from the last one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgumentType
from millstream.iteration.construction import Construction
from millstream.iteration.termination import Criterion, Termination

Step = Callable[[DataStream[Any]], DataStream[Any] | tuple[DataStream[Any], Criterion]]


def iterate(
    initial: DataStream[Any], step: Step, termination: Termination | int | None = None, *, name: str | None = None
) -> DataStream[Any]:
    """Apply a step again and again to a bounded stream, and return the stream of the last result.

    Every round sees all records of the one before (bulk-synchronous). The step is called once, when the program is
    built: it describes the operators that every round uses. State of functions in the step is kept from round to round.

    Args:
        initial: The data set before the first round.
        step: Returns the next data set; or a pair of it and a `Criterion`, which terminates the iteration.
        termination: The number of rounds, or a `Termination`.
        name: The name of the iteration, unique in the program.

    Returns:
        The stream of the data set after the last round.

    Raises:
        InvalidArgument: Nothing terminates the iteration, or the step changes the type of the records.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> doubled = iterate(env.from_collection([1, 2]), lambda numbers: numbers.map(lambda n: 2 * n), 10)

    """
    construction = Construction(initial, name, bounded=True)
    outcome: Any = step(construction.variable(initial))
    feedback, criterion = outcome if isinstance(outcome, tuple) else (outcome, None)
    if not isinstance(feedback, DataStream) or not (criterion is None or isinstance(criterion, Criterion)):
        msg = f"the step of iteration '{construction.loop.name}' returned {outcome!r}"
        raise InvalidArgumentType(msg, hint="return a stream, or a pair of a stream and a Criterion")
    construction.feed_back((feedback,))
    result = construction.result()
    loop = Termination.of(termination).configure(construction.loop, has_criterion=criterion is not None)
    if criterion is not None:
        construction.criterion(criterion.stream, criterion.name, criterion.kind)
        loop = replace(loop, until=criterion.until())
    construction.configure(replace(loop, emits_result=True))
    return result
