"""A graph of streams of vertices and edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.functions.vertex import VertexProgram
from millstream.gelly.dataflow import EDGE, VERTEX, ResultStream, keyed_inputs
from millstream.gelly.library import MOST_ROUNDS, GraphAlgorithms
from millstream.gelly.picture import GraphPicture, draw
from millstream.gelly.transformations import to_edge, to_labels, to_vertex
from millstream.graph.transformations import Input
from millstream.iteration.construction import Construction
from millstream.iteration.termination import Termination
from millstream.runtime.operators.superstep import EDGES, MESSAGES, RESULT, REVERSED, VERTICES, SuperstepSpec
from millstream.table.table import Table
from millstream.table.table_environment import StreamTableEnvironment
from millstream.types.factory import Types

_MOST_DRAWN_VERTICES, _MOST_DRAWN_EDGES = 200, 1000


class Graph(GraphAlgorithms):
    """A directed graph. Vertices are integers with a number as their value, and edges have a weight.

    Vertices that only edges name exist too, without a value (NaN); a vertex that is given again counts once. Nothing
    runs until results are collected.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> graph = Graph.from_collection(env, [(1, 2), (2, 3), (7, 8)])
        >>> components = graph.connected_components()

    """

    @classmethod
    def from_data_stream(cls, edges: DataStream[Any], vertices: DataStream[Any] | None = None) -> Graph:
        """Create a graph from bounded streams.

        Args:
            edges: Tuples or rows (source, target) or (source, target, weight).
            vertices: Ids, or tuples or rows (vertex, value); needed for vertices without edges, and for values.

        """
        if vertices is None:
            vertices = edges.get_execution_environment().from_collection([], VERTEX)
        return cls(
            edges if edges.get_type() == EDGE else edges.map(to_edge, EDGE),
            vertices if vertices.get_type() == VERTEX else vertices.map(to_vertex, VERTEX),
        )

    @classmethod
    def from_collection(
        cls, env: StreamExecutionEnvironment, edges: Iterable[Any], vertices: Iterable[Any] = ()
    ) -> Graph:
        """Create a graph from tuples.

        Args:
            env: The environment.
            edges: Tuples (source, target) or (source, target, weight).
            vertices: Ids, or tuples (vertex, value); needed for vertices without edges, and for values.

        """
        edge_rows, vertex_rows = map(to_edge, edges), map(to_vertex, vertices)
        return cls(env.from_collection(edge_rows, EDGE), env.from_collection(vertex_rows, VERTEX))

    @classmethod
    def from_table(cls, edges: Table, vertices: Table | None = None) -> Graph:
        """Create a graph from bounded tables, whose rows are read as columns.

        Args:
            edges: Columns source, target and, if it has a third one, weight; their names do not matter.
            vertices: Columns vertex and, if it has a second one, value.

        """
        environment = edges._t_env
        if not isinstance(environment, StreamTableEnvironment):
            msg = "the tables of a graph belong to a TableEnvironment"
            raise InvalidArgumentType(msg, hint="create them with StreamTableEnvironment.create(env)")
        if vertices is None:
            rows = environment._env.from_collection([], VERTEX)
        else:
            rows = _columns(environment, vertices, "vertex BIGINT, value DOUBLE", "CAST('NaN' AS DOUBLE)")
        return cls(_columns(environment, edges, "source BIGINT, target BIGINT, weight DOUBLE", "1.0"), rows)

    @classmethod
    def from_arrow(cls, env: StreamExecutionEnvironment, edges: Any, vertices: Any = None) -> Graph:
        """Create a graph from Arrow tables, Polars DataFrames, or other objects with Arrow's C stream interface.

        Args:
            env: The environment.
            edges: Columns source, target and, if it has a third one, weight; their names do not matter.
            vertices: Columns vertex and, if it has a second one, value.

        """
        environment = StreamTableEnvironment.create(env)
        return cls.from_table(
            environment.from_arrow(edges), None if vertices is None else environment.from_arrow(vertices)
        )

    @classmethod
    def from_pandas(cls, env: StreamExecutionEnvironment, edges: Any, vertices: Any = None) -> Graph:
        """Create a graph from pandas DataFrames.

        Args:
            env: The environment.
            edges: Columns source, target and, if it has a third one, weight; their names do not matter.
            vertices: Columns vertex and, if it has a second one, value.

        """
        environment = StreamTableEnvironment.create(env)
        return cls.from_table(
            environment.from_pandas(edges), None if vertices is None else environment.from_pandas(vertices)
        )

    @classmethod
    def from_spark(
        cls, env: StreamExecutionEnvironment, edges: Any, vertices: Any = None, path: str | None = None
    ) -> Graph:
        """Create a graph from bounded DataFrames of Spark.

        Args:
            env: The environment.
            edges: Columns source, target and, if it has a third one, weight; their names do not matter.
            vertices: Columns vertex and, if it has a second one, value.
            path: A new directory that all workers can access; see `StreamTableEnvironment.from_spark`.

        """
        environment = StreamTableEnvironment.create(env)
        paths = (None, None) if path is None else (f"{path}/edges", f"{path}/vertices")
        return cls.from_table(
            environment.from_spark(edges, paths[0]),
            None if vertices is None else environment.from_spark(vertices, paths[1]),
        )

    @classmethod
    def from_networkx(cls, env: StreamExecutionEnvironment, graph: Any, weight: str = "weight") -> Graph:
        """Create a graph from one of networkx; an undirected edge becomes two directed ones.

        Args:
            env: The environment.
            graph: The graph of networkx, whose nodes are integers.
            weight: The name of the attribute of edges that has their weight, 1.0 where it is missing.

        """
        edges = [(source, target, float(data.get(weight, 1.0))) for source, target, data in graph.edges(data=True)]
        if not graph.is_directed():
            edges += [(target, source, value) for source, target, value in edges if source != target]
        return cls.from_collection(env, edges, graph.nodes)

    def run(
        self,
        program: VertexProgram,
        termination: Termination | int | None = None,
        *,
        staleness: int = 0,
        name: str | None = None,
    ) -> ResultStream:
        """Run a vertex program, and return the stream of rows (vertex, value).

        Args:
            program: The vertex program.
            termination: A limit of rounds, or a `Termination`; by default the iteration ends when no vertex sends.
            staleness: A subtask may run so many rounds with the messages of its own vertices before it exchanges
                messages with others. The program must be monotone: then the result is the same, after fewer exchanges.
            name: The name of the iteration, unique in the program.

        """
        _check(program)
        if termination is None:
            termination = Termination(max_iterations=MOST_ROUNDS, must_converge=True)
        termination = Termination.of(termination)
        _check_staleness(program, staleness, termination)
        env = self._edges.get_execution_environment()
        number = Types.LONG() if program.dtype == "int64" else Types.DOUBLE()
        message_fields = [f"value{index}" for index in range(program.width)]
        message_type = Types.ROW_NAMED(["vertex", *message_fields], [Types.LONG(), *[number] * program.width])
        result_type = Types.ROW_NAMED(["vertex", *program.fields], [Types.LONG(), *[number] * len(program.fields)])
        messages = env.from_collection([], message_type)
        construction = Construction(messages, name, bounded=True)
        inputs = (
            *keyed_inputs(self._edges, EDGES, "source"),
            *keyed_inputs(construction.variable(messages), MESSAGES, "vertex"),
            *keyed_inputs(self._edges, REVERSED, "target"),
            *keyed_inputs(self._vertices, VERTICES, "vertex"),
        )
        label = f"Vertex Program: {type(program).__name__}"
        step = env._program.add(label, SuperstepSpec(program, result_type), message_type, inputs, key_type=Types.LONG())
        construction.feed_back((env._stream(step),))
        env._program.declare_side(step, RESULT, result_type)
        loop = replace(construction.loop, staleness=staleness)
        construction.configure(termination.configure(loop, has_criterion=True))
        return ResultStream(env, (Input(step, tag=RESULT),))

    def plot(self, labels: DataStream[Any] | None = None) -> GraphPicture:
        """Run the program, and return a drawing, of at most 200 vertices and 1,000 edges.

        A notebook shows it, and `plot().save(path)` writes an SVG file. Values and weights are tooltips.

        Args:
            labels: Tuples or rows (vertex, label), such as communities: vertices with the same label have the same
                color. Labels are integers.

        """
        vertices = _collect(self.get_vertices(), _MOST_DRAWN_VERTICES, "vertices")
        edges = _collect(self._edges, _MOST_DRAWN_EDGES, "edges")
        labeled = [] if labels is None else _collect(to_labels(labels), _MOST_DRAWN_VERTICES, "labels")
        return draw(dict(vertices), edges, dict(labeled))


def _collect(stream: DataStream[Any], most: int, what: str) -> list[Any]:
    """Return the rows of a stream as tuples, or raise if there are too many to be drawn."""
    rows = [tuple(row) for row in stream.execute_and_collect(limit=most + 1)]
    if len(rows) > most:
        msg = f"the graph has more than {most} {what}, which is too much for a drawing"
        raise InvalidArgument(msg, hint="draw a part of it, with filter_on_vertices or subgraph")
    return rows


def _check(program: Any) -> None:
    """Raise if the attributes of a program cannot be used."""
    name = type(program).__name__
    if not isinstance(program, VertexProgram):
        msg = f"{program!r} is not a vertex program"
        raise InvalidArgumentType(msg, hint="pass an instance of a subclass of VertexProgram")
    if program.combiner not in ("sum", "min", "max", None):
        msg = f"the combiner of {name} is {program.combiner!r}"
        raise InvalidArgument(msg, hint="use 'sum', 'min', 'max', or None for all messages")
    if program.dtype not in ("float64", "int64"):
        msg = f"the dtype of {name} is {program.dtype!r}"
        raise InvalidArgument(msg, hint="use 'float64' or 'int64'")


def _check_staleness(program: VertexProgram, staleness: Any, termination: Termination) -> None:
    """Raise if a program cannot run with this staleness: its result would depend on the parallelism."""
    if not isinstance(staleness, int) or isinstance(staleness, bool) or staleness < 0:
        msg = f"staleness is {staleness!r}"
        raise InvalidArgument(msg, hint="use an int of at least 0")
    if staleness and not program.is_monotone:
        msg = f"{type(program).__name__} is not monotone: it needs all messages of a round, so staleness is {staleness}"
        raise InvalidArgument(msg, hint="leave staleness at 0; set is_monotone only if values can only improve")
    if staleness and termination.max_iterations is not None and not termination.must_converge:
        msg = f"a limit of {termination.max_iterations} rounds and a staleness of {staleness} do not go together"
        raise InvalidArgument(
            msg, hint="set must_converge=True: values before the last round depend on the parallelism"
        )


def _columns(environment: StreamTableEnvironment, table: Table, schema: str, default: str) -> DataStream[Any]:
    """Return the first columns of a table as a stream of vertices or edges."""
    fields = [field.split() for field in schema.split(", ")]
    names = table.get_schema().get_field_names()
    if len(names) < len(fields) - 1:
        msg = f"the table has the columns {', '.join(names)}, but {len(fields) - 1} are needed"
        raise InvalidArgument(msg, hint=f"select the columns {schema}, of which the last is optional")
    expressions = [f"CAST(`{column}` AS {field[1]})" for column, field in zip(names, fields, strict=False)]
    if len(names) < len(fields):
        expressions.append(f"CAST({default} AS {fields[-1][1]})")
    text = ", ".join(f"{expression} AS `{name}`" for expression, (name, _) in zip(expressions, fields, strict=True))
    return environment.to_data_stream(environment.sql_query(f"SELECT {text} FROM {table}"))
