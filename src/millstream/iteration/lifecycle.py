"""How long the operators of a bounded iteration live: through all rounds, or for one.

Promises: Flink ML's names. What is built inside of `for_each_round` starts without state in every round.
Does not know: how an operator is run for a round."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from millstream.datastream.program import Program
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.iteration.stream_lists import DataStreamList
from millstream.runtime.operators.loop import CriterionSpec, HeadSpec, ReplaySpec, TailSpec
from millstream.runtime.operators.per_round import PerRoundSpec
from millstream.runtime.operators.sink import SinkSpec
from millstream.runtime.operators.source import SourceSpec


class OperatorLifeCycle(Enum):
    """How long the operators of a body live.

    Example:
        >>> from millstream.iteration import IterationConfig, OperatorLifeCycle
        >>> config = IterationConfig(operator_life_cycle=OperatorLifeCycle.PER_ROUND)

    """

    ALL_ROUND = "all-round"
    PER_ROUND = "per-round"


def for_each_round(inputs: DataStreamList, body: Callable[[DataStreamList], DataStreamList]) -> DataStreamList:
    """Add operators to the body of a bounded iteration that start without state in every round.

    In each round, their functions are copies that have not been called, and they have no state. When all records of the
    round have been processed, their input ends: the watermark comes to its end, so windows and timers fire.

    Args:
        inputs: The inputs of the operators.
        body: Describes the operators, and returns their outputs.

    Returns:
        The outputs.

    Example:
        >>> from millstream.iteration import DataStreamList
        >>> def add_up(streams):
        ...     return DataStreamList.of(streams.get(0).key_by(lambda number: 0).reduce(lambda one, other: one + other))
        >>> def body(variables, data):
        ...     sums = for_each_round(variables, add_up)

    """
    if not len(inputs):
        msg = "for_each_round has no inputs"
        raise InvalidArgument(msg, hint="pass DataStreamList.of(stream)")
    program = inputs[0].get_execution_environment()._program
    before = program.last_id
    outputs: Any = body(inputs)
    if not isinstance(outputs, DataStreamList):
        msg = f"the body of for_each_round returned {outputs!r}"
        raise InvalidArgumentType(msg, hint="return a DataStreamList")
    let_live_for_one_round(program, before)
    return outputs


def let_live_for_one_round(program: Program, before: int) -> None:
    """Let the operators that were added after an id live for one round."""
    for step in program.all_transformations():
        if step.id <= before or isinstance(step.spec, HeadSpec | TailSpec | CriterionSpec | ReplaySpec | PerRoundSpec):
            continue
        if isinstance(step.spec, SourceSpec | SinkSpec):
            msg = f"'{step.name}' cannot start again in every round of an iteration"
            raise InvalidArgument(msg, hint="create sources and sinks outside of the body, and pass streams to it")
        program.change(step.id, spec=PerRoundSpec(step.spec))
