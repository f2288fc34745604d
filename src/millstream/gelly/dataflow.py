"""Record types of graphs, and streams of results.

Promises: the vertices and edges with one key are in one subtask.
Does not know: what partition functions compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from millstream.datastream.data_stream import DataStream
from millstream.functions.partition import PartitionFunction
from millstream.graph.transformations import Input
from millstream.runtime.keys import KeySelection
from millstream.runtime.operators.map_partition import MapPartitionSpec
from millstream.runtime.partitioners import Global, Hash
from millstream.table.table import Table
from millstream.table.table_environment import StreamTableEnvironment
from millstream.types.factory import TypeInformation, Types

EDGE = Types.ROW_NAMED(["source", "target", "weight"], [Types.LONG(), Types.LONG(), Types.DOUBLE()])
VERTEX = Types.ROW_NAMED(["vertex", "value"], [Types.LONG(), Types.DOUBLE()])
COUNT = Types.ROW_NAMED(["vertex", "value"], [Types.LONG(), Types.LONG()])


class ResultStream(DataStream[Any]):
    """A stream of results of a graph, which can also be collected as columns."""

    def to_table(self, table_environment: StreamTableEnvironment | None = None) -> Table:
        """Return the results as a table.

        Args:
            table_environment: The table environment; by default a new one on the environment of the stream.

        """
        environment = table_environment or StreamTableEnvironment.create(self.get_execution_environment())
        return environment.from_data_stream(self)

    def to_arrow(self) -> pa.Table:
        """Run the program, and return the results as an Arrow table."""
        return self.to_table().to_arrow()

    def to_pandas(self) -> Any:
        """Run the program, and return the results as a pandas DataFrame."""
        return self.to_table().to_pandas()


def map_partition(
    name: str, function: PartitionFunction, inputs: Sequence[tuple[DataStream[Any], str]], output: TypeInformation
) -> ResultStream:
    """Return what a function computes from all records with the keys of a subtask.

    Args:
        name: The name of the operator.
        function: The function.
        inputs: Streams, and the name of the field that has the key of each.
        output: The type of the results.

    """
    edges = tuple(edge for side, (stream, field) in enumerate(inputs) for edge in keyed_inputs(stream, side, field))
    return _add(name, function, inputs, output, edges)


def map_all(name: str, function: PartitionFunction, stream: DataStream[Any], output: TypeInformation) -> ResultStream:
    """Return what a function computes from all records of a stream, in one subtask."""
    edges = tuple(replace(edge, side=0, partitioner=Global()) for edge in stream._inputs)
    result = _add(name, function, [(stream, stream.get_type().field_names[0])], output, edges)  # type: ignore[attr-defined]
    return result.force_non_parallel()


def _add(
    name: str,
    function: PartitionFunction,
    inputs: Sequence[tuple[DataStream[Any], str]],
    output: TypeInformation,
    edges: tuple[Input, ...],
) -> ResultStream:
    env = inputs[0][0].get_execution_environment()
    spec = MapPartitionSpec(function, tuple(stream.get_type() for stream, _ in inputs), tuple(key for _, key in inputs))
    return ResultStream(env, (Input(env._program.add(name, spec, output, edges)),))


def keyed_inputs(stream: DataStream[Any], side: int, field: str) -> tuple[Input, ...]:
    """Return the inputs of an operator that partitions a stream by a field."""
    partitioner = Hash(KeySelection(Types.LONG(), field=field))
    return tuple(replace(edge, side=side, partitioner=partitioner) for edge in stream._inputs)
