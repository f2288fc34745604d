"""CEP.pattern(stream, pattern): a pattern on a stream, and what becomes of its matches.

Promises: Flink's methods in Python spelling; the automaton is made once here, so that a pattern that makes no sense is
refused while the program is written.
Does not know: how matching works."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from millstream.cep.conditions import ConditionRegistry, rich_conditions
from millstream.cep.dynamic import DynamicCepSpec
from millstream.cep.functions import PatternProcessFunction, Selecting, SelectingWithTimeout
from millstream.cep.pattern import Pattern
from millstream.datastream.call_types import result_type
from millstream.datastream.data_stream import DataStream
from millstream.errors import UserError
from millstream.functions import Function
from millstream.graph.transformations import Input
from millstream.runtime.keys import KeySelection
from millstream.runtime.nfa.compile import automaton
from millstream.runtime.nfa.pattern import Step
from millstream.runtime.operators.cep import CepSpec
from millstream.runtime.partitioners import Broadcast, Hash
from millstream.state_descriptors.output_tag import OutputTag
from millstream.types.factory import TypeInformation, Types

S = TypeVar("S", bound="PatternStream")


def _same_key(_: Any) -> int:
    return 0


class PatternStream:
    """A stream with a pattern. Event time unless told otherwise."""

    def __init__(self, stream: Any, spec: Callable[..., CepSpec], name: str) -> None:
        if not isinstance(stream, DataStream):
            msg = f"{stream!r} is not a stream"
            raise UserError(msg)
        self._stream, self._spec, self._name = stream, spec, name
        self._options: dict[str, Any] = {}

    def _with(self: S, **options: Any) -> S:
        changed = type(self).__new__(type(self))
        changed.__dict__.update(self.__dict__)
        changed._options = {**self._options, **options}
        return changed

    def in_processing_time(self: S) -> S:
        """Match events as they come."""
        return self._with(processing_time=True)

    def in_event_time(self: S) -> S:
        """Match events in the order of their timestamps, when the watermark has passed them."""
        return self._with(processing_time=False)

    def with_comparator(self: S, comparator: Callable[[Any, Any], int]) -> S:
        """Order events of the same time by a function of two events, negative when the first comes first."""
        return self._with(comparator=comparator)

    def side_output_late_data(self: S, late_data_output_tag: OutputTag) -> S:
        """Send events that come after the watermark to a side output."""
        return self._with(late_tag=late_data_output_tag.tag_id)

    # ------------------------------------------------------------------------------------------------------ results

    def process(self, pattern_process_function: Any, output_type: TypeInformation | None = None) -> DataStream:
        """A function that is called with every match, and may send to side outputs."""
        function = pattern_process_function
        if not callable(getattr(function, "process_match", None)):
            msg = f"{function!r} has no process_match"
            raise UserError(msg, hint="subclass PatternProcessFunction")
        return self._apply(function, result_type(output_type, function.process_match, element=True))

    def select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """One result per match: `select(function)`, or `select(tag, timeout_function, function)`."""
        return self._select(functions, "select", output_type, flat=False)

    def flat_select(self, *functions: Any, output_type: TypeInformation | None = None) -> DataStream:
        """Any number of results per match: `flat_select(function)`, or with a tag and a timeout function before it."""
        return self._select(functions, "flat_select", output_type, flat=True)

    def _select(self, given: tuple[Any, ...], method: str, output_type: Any, *, flat: bool) -> DataStream:
        match given:
            case (OutputTag() as tag, timeout, function):
                calling: Selecting = SelectingWithTimeout(function, method, tag, timeout, flat=flat)
            case (function, TypeInformation() as kind):
                return self._select((function,), method, kind, flat=flat)
            case (function,):
                calling = Selecting(function, method, flat=flat)
            case _:
                msg = f"{method} was given {len(given)} arguments"
                raise UserError(msg, hint=f"{method}(function), or {method}(tag, timeout_function, function)")
        return self._apply(calling, result_type(output_type, getattr(function, method, function), element=flat))

    def _apply(self, function: Function | PatternProcessFunction, kind: TypeInformation) -> DataStream:
        stream = self._stream
        key = stream._key_selection()
        more: dict[str, Any] = {}
        if key is None:
            key = KeySelection(Types.INT(), selector=_same_key)
            more["parallelism"] = 1
        spec = self._spec(key=key, input_type=stream.get_type(), function=function, **self._options)
        inputs = tuple(dataclasses.replace(each, partitioner=Hash(key)) for each in stream._inputs)
        number = stream._env._program.add(
            self._name, spec, kind, inputs + self._other_inputs(), key_type=key.key_type, **more
        )
        return stream._env._stream(number)

    def _other_inputs(self) -> tuple[Input, ...]:
        return ()


class DynamicPatternStream(PatternStream):
    """A stream with patterns that come and go while the job runs."""

    def __init__(self, stream: DataStream, patterns: DataStream, registry: ConditionRegistry | None) -> None:
        super().__init__(stream, DynamicCepSpec.of(registry), "Dynamic patterns")
        self._patterns = patterns

    def side_output_rejected_patterns(self, output_tag: OutputTag) -> DynamicPatternStream:
        """Send texts that say why a pattern was refused to a side output."""
        return self._with(rejected_tag=output_tag.tag_id)

    def _other_inputs(self) -> tuple[Input, ...]:
        return tuple(dataclasses.replace(each, side=1, partitioner=Broadcast()) for each in self._patterns._inputs)


class CEP:
    """Where patterns meet streams."""

    @staticmethod
    def pattern(stream: DataStream, pattern: Any, comparator: Callable[[Any, Any], int] | None = None) -> PatternStream:
        """Look for a pattern in a stream: in each key by itself, or in the whole of a stream without keys."""
        if not isinstance(pattern, Pattern):
            msg = f"{pattern!r} is not a pattern"
            raise UserError(msg, hint="Pattern.begin('first').where(...)")
        plan = pattern.plan()
        automaton(plan)
        opened = {id(each): each for step in _all(plan.steps) for each in _opened(step)}

        def spec(**options: Any) -> CepSpec:
            return CepSpec(plan=plan, opened=tuple(opened.values()), **options)

        found = PatternStream(stream, spec, f"Pattern: {' > '.join(step.name for step in plan.steps)}")
        return found if comparator is None else found.with_comparator(comparator)

    @staticmethod
    def dynamic_patterns(
        stream: DataStream, pattern_stream: DataStream, registry: ConditionRegistry | None = None
    ) -> DynamicPatternStream:
        """Look for patterns that a second stream brings while the job runs.

        Its records are JSON (text, bytes or dicts): {"id": ..., "version": ..., "pattern": {...}} brings a pattern, or
        replaces one of another version; {"id": ..., "remove": true} takes it away. Partial matches go with their
        pattern. A record that makes no sense is counted, and told to `side_output_rejected_patterns`.

        The pattern stream has its say in event time, as every input has: give it watermarks, or let it be idle."""
        return DynamicPatternStream(stream, pattern_stream, registry)


def _all(steps: tuple[Step, ...]) -> list[Step]:
    return [each for step in steps for each in (step, *_all(step.group))]


def _opened(step: Step) -> list[Function]:
    found: list[Function] = list(rich_conditions(step.condition))
    return found if step.until is None else [*found, *rich_conditions(step.until)]
