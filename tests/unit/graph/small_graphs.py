"""Transformations built directly, without the API."""

from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Sink, SinkWriter, WriterContext
from millstream.connector.source import ReaderContext, Source, SourceReader, SplitEnumerator
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.stream_graph import StreamGraph, stream_graph
from millstream.graph.transformations import Input, Transformation
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.partitioners import Hash, Partitioner, Rebalance
from millstream.types.factory import Types


@dataclass(frozen=True)
class Step(OperatorSpec):
    """An operator that is never run."""

    def build(self, context: OperatorContext) -> Operator:
        raise AssertionError("graphs are drawn, never run")


@dataclass(frozen=True)
class From(Source):
    """A source that is never read, with a maximum number of readers."""

    readers: int | None = None

    def max_parallelism(self) -> int | None:
        return self.readers

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        raise AssertionError("graphs are drawn, never run")

    def create_reader(self, context: ReaderContext) -> SourceReader:
        raise AssertionError("graphs are drawn, never run")


class To(Sink):
    """A sink that is never written."""

    def create_writer(self, context: WriterContext) -> SinkWriter:
        raise AssertionError("graphs are drawn, never run")


def step(number: int, name: str, *inputs: int | Input, **more: Any) -> Transformation:
    """An operator; an input is an id, or an edge with its partitioner."""
    given = tuple(each if isinstance(each, Input) else Input(each) for each in inputs)
    return Transformation(number, name, Step(), Types.STRING(), given, **more)


def source(number: int, name: str, readers: int | None = None, **more: Any) -> Transformation:
    return step(number, name, source=From(readers), **more)


def sink(number: int, name: str, *inputs: int | Input, **more: Any) -> Transformation:
    return step(number, name, *inputs, sink=To(), **more)


def partitioned(upstream: int, partitioner: Partitioner, **more: Any) -> Input:
    return Input(upstream, partitioner=partitioner, **more)


def by_key(upstream: int, **more: Any) -> Input:
    return partitioned(upstream, Hash(KeySelection(Types.STRING(), field=0)), **more)


def graph(*steps: Transformation, parallelism: int = 2, **more: Any) -> StreamGraph:
    return stream_graph(steps, parallelism=parallelism, **more)


def plan(*steps: Transformation, name: str = "job", parallelism: int = 2, **more: Any) -> ExecutionPlan:
    return execution_plan(job_graph(graph(*steps, parallelism=parallelism, **more), name))


def linear() -> ExecutionPlan:
    """Two chains with a key between them."""
    return plan(
        source(1, "Source: orders", uid="orders"),
        step(2, "Map", 1),
        step(3, "Window", by_key(2), key_type=Types.STRING(), uid="totals"),
        sink(4, "Sink: Print to Std. Out", 3),
        name="totals",
    )


def diamond() -> ExecutionPlan:
    """A side output and a union that meet again, with an exchange that skips a level."""
    side = {"side_types": {"late": Types.STRING()}}
    return plan(
        source(1, "Source: clicks", uid="clicks"),
        step(2, "split", 1, **side),
        source(3, "Source: prices", readers=1),
        step(4, "Late", partitioned(2, Rebalance(), tag="late")),
        step(5, "Window", by_key(2), by_key(3), key_type=Types.STRING()),
        step(6, "Join", by_key(5), by_key(3, side=1), key_type=Types.STRING(), uid="join"),
        step(7, "All", 6, 4),
        sink(8, "Sink: files", 7),
        sink(9, "Sink: alerts", 4),
        name="diamond",
    )


def wide() -> ExecutionPlan:
    """Six sources into one union."""
    many = [
        source(number, f"Source: topic-{number} (a rather long name of a Kafka topic {number})")
        for number in range(1, 7)
    ]
    return plan(
        *many,
        step(7, "Union map", *range(1, 7)),
        step(8, "KeyedProcess", by_key(7), key_type=Types.STRING()),
        sink(9, "Sink: a", 8),
        sink(10, "Sink: b", 8, parallelism=1),
        name="wide",
        parallelism=16,
    )
