"""CEP and PatternStream: apply patterns to streams and select their matches.

Promises: Flink's methods in Python spelling. The pattern is compiled when the program is built, so an invalid pattern
is refused before the job runs.
Does not know: how matching works."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from millstream.cep.conditions import ConditionRegistry, find_rich_conditions
from millstream.cep.dynamic import DynamicCepSpec
from millstream.cep.functions import PatternProcessFunction, SelectAdapter, SelectWithTimeoutAdapter
from millstream.cep.pattern import Pattern
from millstream.datastream.call_types import result_type
from millstream.datastream.data_stream import DataStream
from millstream.errors import UserError
from millstream.functions import Function
from millstream.graph.transformations import Input
from millstream.runtime.keys import KeySelection
from millstream.runtime.nfa.compile import compile_pattern
from millstream.runtime.nfa.pattern import Step
from millstream.runtime.operators.cep import CepSpec
from millstream.runtime.partitioners import Broadcast, Hash
from millstream.state_descriptors.output_tag import OutputTag
from millstream.types.factory import TypeInformation, Types

S = TypeVar("S", bound="PatternStream")


def _get_same_key(_: Any) -> int:
    return 0


class PatternStream:
    """A stream and a pattern that is searched for in it; in event time unless `in_processing_time` is called.

    Each method returns a new stream or a changed copy.

    Example:
        >>> from millstream.cep import CEP, Pattern
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> rises = CEP.pattern(env.from_collection([1, 5]), Pattern.begin("high").where(lambda number: number > 3))
        >>> list(rises.in_processing_time().select(lambda match: match["high"][0]).execute_and_collect())
        [5]

    """

    def __init__(self, stream: Any, spec: Callable[..., CepSpec], name: str) -> None:
        if not isinstance(stream, DataStream):
            msg = f"{stream!r} is not a stream"
            raise UserError(msg)
        self._stream, self._spec, self._name = stream, spec, name
        self._options: dict[str, Any] = {}

    def _replace_options(self: S, **options: Any) -> S:
        changed = type(self).__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed._options = {**self._options, **options}
        return changed

    def in_processing_time(self: S) -> S:
        """Match events in the order of arrival, with the processing time for `within`."""
        return self._replace_options(processing_time=True)

    def in_event_time(self: S) -> S:
        """Match events in the order of their timestamps when the watermark has passed them; the default."""
        return self._replace_options(processing_time=False)

    def with_comparator(self: S, comparator: Callable[[Any, Any], int]) -> S:
        """Order events with equal timestamps.

        Args:
            comparator: A function of two events that is negative if the first comes first, positive if it comes last,
                else 0.

        """
        return self._replace_options(comparator=comparator)

    def side_output_late_data(self: S, late_data_output_tag: OutputTag) -> S:
        """Emit late events, whose timestamp the watermark has passed, to a side output instead of dropping them.

        Args:
            late_data_output_tag: The tag of the side output of the resulting stream.

        """
        return self._replace_options(late_tag=late_data_output_tag.tag_id)

    # ------------------------------------------------------------------------------------------------------ results

    def process(self, pattern_process_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a process function to every match.

        Args:
            pattern_process_function: A `PatternProcessFunction`. If it is a `TimedOutPartialMatchHandler` too, it is
                also called with partial matches that timed out.
            output_type: The type of the results; by default derived from the annotation of `process_match`.

        Returns:
            The stream of the results.

        Raises:
            UserError: If the function has no method `process_match`.

        """
        function = pattern_process_function
        if not callable(getattr(function, "process_match", None)):
            msg = f"{function!r} has no process_match"
            raise UserError(msg, hint="subclass PatternProcessFunction")
        return self._apply(function, result_type(output_type, function.process_match, element=True))

    def select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a function that returns one result for each match.

        Args:
            *functions: A function or `PatternSelectFunction`; or an `OutputTag` and a timeout function for partial
                matches that timed out, and then the function.
            output_type: The type of the results; by default derived from the annotation of the function.

        Returns:
            The stream of the results.

        Raises:
            UserError: If the arguments are of another form.

        """
        return self._select(functions, "select", output_type, flat=False)

    def flat_select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Apply a function that returns any number of results for each match.

        Args:
            *functions: A function or `PatternFlatSelectFunction`; or an `OutputTag` and a timeout function for partial
                matches that timed out, and then the function.
            output_type: The type of the results; by default derived from the annotation of the function.

        Returns:
            The stream of the results.

        Raises:
            UserError: If the arguments are of another form.

        """
        return self._select(functions, "flat_select", output_type, flat=True)

    def _select(self, functions: tuple[Any, ...], method: str, output_type: Any, *, flat: bool) -> DataStream:
        match functions:
            case (OutputTag() as tag, timeout, function):
                adapter: SelectAdapter = SelectWithTimeoutAdapter(function, method, tag, timeout, flat=flat)
            case (function, TypeInformation() as type_info):
                return self._select((function,), method, type_info, flat=flat)
            case (function,):
                adapter = SelectAdapter(function, method, flat=flat)
            case _:
                msg = f"{method} was called with {len(functions)} arguments"
                raise UserError(msg, hint=f"call {method}(function), or {method}(tag, timeout_function, function)")
        return self._apply(adapter, result_type(output_type, getattr(function, method, function), element=flat))

    def _apply(self, function: Function | PatternProcessFunction, output_type: TypeInformation) -> DataStream:
        stream = self._stream
        key = stream._key_selection()
        settings: dict[str, Any] = {}
        if key is None:
            key = KeySelection(Types.INT(), selector=_get_same_key)
            settings["parallelism"] = 1
        spec = self._spec(key=key, input_type=stream.get_type(), function=function, **self._options)
        inputs = tuple(dataclasses.replace(edge, partitioner=Hash(key)) for edge in stream._inputs)
        number = stream._env._program.add(
            self._name, spec, output_type, inputs + self._list_other_inputs(), key_type=key.key_type, **settings
        )
        return stream._env._stream(number)

    def _list_other_inputs(self) -> tuple[Input, ...]:
        return ()


class DynamicPatternStream(PatternStream):
    """A stream and patterns that are added, replaced and removed while the job runs.

    Example:
        >>> from millstream.cep import CEP, ConditionRegistry
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> events, updates = env.from_collection([1, 5]), env.from_collection([])
        >>> matches = CEP.dynamic_patterns(events, updates, ConditionRegistry(high=lambda number: number > 3))

    """

    def __init__(self, stream: DataStream, patterns: DataStream, registry: ConditionRegistry | None) -> None:
        super().__init__(stream, DynamicCepSpec.of(registry), "Dynamic patterns")
        self._patterns = patterns

    def side_output_rejected_patterns(self, output_tag: OutputTag) -> DynamicPatternStream:
        """Emit an error message for each rejected record of the pattern stream to a side output.

        Args:
            output_tag: The tag of the side output of the resulting stream.

        """
        return self._replace_options(rejected_tag=output_tag.tag_id)

    def _list_other_inputs(self) -> tuple[Input, ...]:
        return tuple(dataclasses.replace(edge, side=1, partitioner=Broadcast()) for edge in self._patterns._inputs)


class CEP:
    """The entry point of complex event processing.

    Example:
        >>> from millstream.cep import CEP, Pattern
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> events = env.from_collection([1, 5, 9])
        >>> rise = Pattern.begin("low").where(lambda n: n < 3).followed_by("high").where(lambda n: n > 7)
        >>> matches = CEP.pattern(events, rise).in_processing_time().select(lambda match: (match["low"], match["high"]))
        >>> list(matches.execute_and_collect())
        [([1], [9])]

    """

    @staticmethod
    def pattern(stream: DataStream, pattern: Any, comparator: Callable[[Any, Any], int] | None = None) -> PatternStream:
        """Search for a pattern in a stream.

        The events of each key of a keyed stream are matched separately. A stream without keys is matched as a whole,
        with parallelism 1.

        Args:
            stream: The events.
            pattern: The pattern.
            comparator: A function that orders events with equal timestamps; see `PatternStream.with_comparator`.

        Returns:
            A pattern stream, for `process`, `select` or `flat_select`.

        Raises:
            MalformedPatternException: If the pattern is not valid.

        """
        if not isinstance(pattern, Pattern):
            msg = f"{pattern!r} is not a pattern"
            raise UserError(msg, hint="Pattern.begin('first').where(...)")
        plan = pattern.plan()
        compile_pattern(plan)
        rich_conditions = {
            id(condition): condition
            for step in _list_all_steps(plan.steps)
            for condition in _find_rich_conditions(step)
        }

        def create_spec(**options: Any) -> CepSpec:
            return CepSpec(plan=plan, opened=tuple(rich_conditions.values()), **options)

        matches = PatternStream(stream, create_spec, f"Pattern: {' > '.join(step.name for step in plan.steps)}")
        return matches if comparator is None else matches.with_comparator(comparator)

    @staticmethod
    def dynamic_patterns(
        stream: DataStream, pattern_stream: DataStream, registry: ConditionRegistry | None = None
    ) -> DynamicPatternStream:
        """Search for patterns that a second stream adds and removes while the job runs.

        The records of the pattern stream are JSON (text, bytes or dicts). `{"id": ..., "version": ..., "pattern":
        {...}}` adds a pattern, or replaces the pattern with this id if the version or the pattern differs. `{"id": ...,
        "remove": true}` removes it. Removing or replacing a pattern discards its partial matches. An invalid record is
        counted in a metric and reported to `side_output_rejected_patterns`.

        In event time, the watermark is the minimum of both streams. The pattern stream must therefore emit watermarks
        or be idle.

        Args:
            stream: The events.
            pattern_stream: The patterns; each subtask receives all of them.
            registry: The conditions that patterns can refer to by name.

        Returns:
            A pattern stream, for `process`, `select` or `flat_select`.

        """
        return DynamicPatternStream(stream, pattern_stream, registry)


def _list_all_steps(steps: tuple[Step, ...]) -> list[Step]:
    return [nested for step in steps for nested in (step, *_list_all_steps(step.group))]


def _find_rich_conditions(step: Step) -> list[Function]:
    conditions: list[Function] = list(find_rich_conditions(step.condition))
    return conditions if step.until is None else [*conditions, *find_rich_conditions(step.until)]
