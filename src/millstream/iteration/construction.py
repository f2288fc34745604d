"""Adds heads, tails and criteria to a program.

Promises: the feedback stream has the type of the variable stream, and its tail the parallelism of the head.
Does not know: when an iteration terminates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument
from millstream.graph.transformations import Input
from millstream.runtime.loops import LoopConfig
from millstream.runtime.operators.loop import RESULT, CriterionSpec, HeadSpec, ReplaySpec, TailSpec
from millstream.types.factory import PickledBytesTypeInfo, TypeInformation


class Construction:
    """One iteration while its program is built. The loop is configured at the end, when its body is known."""

    def __init__(self, first: DataStream[Any], name: str | None, *, bounded: bool) -> None:
        self.env = first.get_execution_environment()
        self._program = self.env._program
        if name is None:
            specs = {step.id: step.spec for step in self._program.all_transformations()}.values()
            name = f"iteration-{sum(isinstance(spec, HeadSpec) and spec.index == 0 for spec in specs) + 1}"
        self.loop = LoopConfig(name, bounded=bounded)
        self._parts: list[int] = []
        self._heads: list[tuple[int, TypeInformation]] = []

    def _add(self, name: str, spec: Any, record_type: TypeInformation, inputs: tuple[Input, ...] = ()) -> int:
        part = self._program.add(name, spec, record_type, inputs)
        self._parts.append(part)
        self._program.keep_together(self._parts)
        return part

    def variable(self, initial: DataStream[Any]) -> DataStream[Any]:
        """Return the stream of the initial records and the feedback."""
        record_type, index = initial.get_type(), len(self._heads)
        head = self._add(f"Iteration Head: {self._label(index)}", HeadSpec(self.loop, index, record_type), record_type)
        self._heads.append((head, record_type))
        return initial.union(DataStream(self.env, (Input(head),)))

    def _label(self, index: int) -> str:
        return self.loop.name if not index else f"{self.loop.name} ({index + 1})"

    def replay(self, stream: DataStream[Any]) -> DataStream[Any]:
        """Return a stream that is emitted again in every round."""
        replay = self._add(f"Replay: {stream.get_name()}", ReplaySpec(self.loop), stream.get_type(), stream._inputs)
        return DataStream(self.env, (Input(replay),))

    def feed_back(self, streams: tuple[DataStream[Any], ...]) -> None:
        """Connect the feedback streams to the heads."""
        if len(streams) != len(self._heads):
            msg = (
                f"iteration '{self.loop.name}' has {len(self._heads)} variable streams and {len(streams)} "
                "feedback streams"
            )
            raise InvalidArgument(msg, hint="return one feedback stream for each variable stream, in the same order")
        for index, (stream, (_, record_type)) in enumerate(zip(streams, self._heads, strict=True)):
            self._check_type(stream.get_type(), record_type)
            spec = TailSpec(self.loop, index, record_type)
            self._add(f"Iteration Tail: {self._label(index)}", spec, record_type, stream._inputs)

    def _check_type(self, feedback: TypeInformation, variable: TypeInformation) -> None:
        has_untyped = any(isinstance(record_type, PickledBytesTypeInfo) for record_type in (feedback, variable))
        if feedback != variable and not has_untyped:
            msg = (
                f"the feedback of iteration '{self.loop.name}' has records of type {feedback}, and its variable stream "
                f"has records of type {variable}"
            )
            raise InvalidArgument(msg, hint="map one of them to the type of the other")

    def criterion(self, stream: DataStream[Any], aggregate: str | None = None, kind: str = "count") -> None:
        """Count the records of a stream in each round, or aggregate its numbers."""
        spec = CriterionSpec(self.loop, aggregate, kind)
        self._add(f"Criterion: {self.loop.name}", spec, stream.get_type(), stream._inputs)

    def result(self) -> DataStream[Any]:
        """Return the stream of the feedback of the last round."""
        head, record_type = self._heads[0]
        self._program.declare_side(head, RESULT, record_type)
        return DataStream(self.env, (Input(head, tag=RESULT),))

    def configure(self, loop: LoopConfig) -> None:
        """Set when the loop terminates."""
        self.loop = loop
        for part in self._parts:
            spec: Any = self._program.get(part).spec
            self._program.change(part, spec=replace(spec, loop=loop))
