"""Flink ML's `Iterations`: unbounded streams with feedback, and bounded streams until termination."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.iteration.construction import Construction
from millstream.iteration.lifecycle import OperatorLifeCycle, let_live_for_one_round
from millstream.iteration.stream_lists import DataStreamList, ReplayableDataStreamList
from millstream.iteration.termination import Criterion, Termination


@dataclass(frozen=True)
class IterationBodyResult:
    """What the body of an iteration returns.

    Attributes:
        feedback_variable_streams: One stream for each variable stream, in the same order.
        output_streams: The results of the iteration.
        termination_criteria: The iteration terminates after a round in which this stream has no records; or a
            `Criterion`.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> numbers = DataStreamList.of(env.from_collection([1]))
        >>> IterationBodyResult(numbers, numbers).get_output_streams().size()
        1

    """

    feedback_variable_streams: DataStreamList
    output_streams: DataStreamList
    termination_criteria: DataStream[Any] | Criterion | None = None

    def get_feedback_variable_streams(self) -> DataStreamList:
        """Return the feedback streams."""
        return self.feedback_variable_streams

    def get_output_streams(self) -> DataStreamList:
        """Return the results."""
        return self.output_streams

    def get_termination_criteria(self) -> DataStream[Any] | Criterion | None:
        """Return the criteria stream, None if there is none."""
        return self.termination_criteria


class IterationBody(ABC):
    """The operators of an iteration. A function with the same arguments can be used instead.

    Example:
        >>> class Halve(IterationBody):
        ...     def process(self, variable_streams, data_streams):
        ...         halves = variable_streams.get(0).map(lambda number: number // 2)
        ...         remaining = halves.filter(lambda number: number > 0)
        ...         return IterationBodyResult(DataStreamList.of(remaining), DataStreamList.of(halves))

    """

    @abstractmethod
    def process(self, variable_streams: DataStreamList, data_streams: DataStreamList) -> IterationBodyResult:
        """Describe one round.

        Args:
            variable_streams: The initial records and the feedback of each variable stream.
            data_streams: The constant inputs.

        """


Body = IterationBody | Callable[[DataStreamList, DataStreamList], IterationBodyResult]


@dataclass(frozen=True)
class IterationConfig:
    """When a bounded iteration terminates, besides after a round without feedback or criteria records.

    Attributes:
        termination: A limit of rounds, and a deadline.
        name: The name of the iteration, unique in the program.
        operator_life_cycle: Whether the operators of the body live through all rounds, or start without state in every
            round; see `for_each_round`, which does it for some of them.

    Example:
        >>> IterationConfig(Termination(max_iterations=10)).termination.max_iterations
        10

    """

    termination: Termination = field(default_factory=lambda: Termination(when_empty=True))
    name: str | None = None
    operator_life_cycle: OperatorLifeCycle = OperatorLifeCycle.ALL_ROUND


class Iterations:
    """Creates iterations with several variable streams.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> def halve(variables, data):
        ...     halves = variables.get(0).map(lambda number: number // 2)
        ...     return IterationBodyResult(
        ...         DataStreamList.of(halves.filter(lambda number: number > 0)), DataStreamList.of(halves)
        ...     )
        >>> outputs = Iterations.iterate_bounded_streams_until_termination(
        ...     DataStreamList.of(env.from_collection([9])),
        ...     ReplayableDataStreamList.not_replay(),
        ...     IterationConfig(),
        ...     halve,
        ... )

    """

    @staticmethod
    def iterate_unbounded_streams(
        init_variable_streams: DataStreamList, data_streams: DataStreamList, body: Body, *, name: str | None = None
    ) -> DataStreamList:
        """Feed records back while new ones arrive.

        Records and feedback are processed together, and feedback is part of every checkpoint. After the end of a
        bounded input, the iteration terminates when no feedback is left.

        Args:
            init_variable_streams: The initial records of each variable stream.
            data_streams: The other inputs of the body.
            body: Describes the operators; it is called once.
            name: The name of the iteration, unique in the program.

        """
        construction = _begin(init_variable_streams, name, bounded=False)
        result = _call(body, construction, init_variable_streams, data_streams)
        if result.termination_criteria is not None:
            msg = f"unbounded iteration '{construction.loop.name}' has a termination criterion"
            raise InvalidArgument(msg, hint="an unbounded iteration terminates when its input has ended; remove it")
        construction.feed_back(tuple(result.feedback_variable_streams))
        return result.output_streams

    @staticmethod
    def iterate_bounded_streams_until_termination(
        init_variable_streams: DataStreamList,
        data_streams: ReplayableDataStreamList,
        config: IterationConfig,
        body: Body,
    ) -> DataStreamList:
        """Iterate over bounded streams in rounds.

        Round 0 processes the initial records, and each later round the feedback of the one before. Functions that are
        an `IterationListener` are notified at the end of each round. The iteration terminates after a round without
        feedback, or without records of the criteria stream. The feedback of the last round is discarded.

        Args:
            init_variable_streams: The initial records of each variable stream.
            data_streams: The constant inputs of the body, emitted in every round or in the first.
            config: The limit of rounds, and the name.
            body: Describes the operators; it is called once.

        """
        construction = _begin(init_variable_streams, config.name, bounded=True)
        replayed = map(construction.replay, data_streams.replayed_streams)
        constants = DataStreamList(*replayed, *data_streams.non_replayed_streams)
        program = construction.env._program
        before = program.last_id
        result = _call(body, construction, init_variable_streams, constants)
        if config.operator_life_cycle is OperatorLifeCycle.PER_ROUND:
            let_live_for_one_round(program, before)
        construction.feed_back(tuple(result.feedback_variable_streams))
        criteria = result.termination_criteria
        loop = config.termination.configure(construction.loop, has_criterion=criteria is not None)
        if isinstance(criteria, Criterion):
            construction.criterion(criteria.stream, criteria.name, criteria.kind)
            loop = replace(loop, until=criteria.until())
        elif criteria is not None:
            construction.criterion(criteria)
            loop = replace(loop, has_criteria=True)
        construction.configure(loop)
        return result.output_streams


def _begin(variables: DataStreamList, name: str | None, *, bounded: bool) -> Construction:
    if not len(variables):
        msg = "an iteration needs at least one variable stream"
        raise InvalidArgument(msg, hint="pass DataStreamList.of(stream)")
    return Construction(variables[0], name, bounded=bounded)


def _call(
    body: Body, construction: Construction, variables: DataStreamList, constants: DataStreamList
) -> IterationBodyResult:
    process = body.process if isinstance(body, IterationBody) else body
    result: Any = process(DataStreamList(*map(construction.variable, variables)), constants)
    if not isinstance(result, IterationBodyResult):
        msg = f"the body of iteration '{construction.loop.name}' returned {result!r}"
        raise InvalidArgumentType(msg, hint="return an IterationBodyResult")
    return result
