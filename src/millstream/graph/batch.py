"""A program as a batch job: what is decided before it runs.

Promises: operators that would tell a value again and again tell the last one; timestamps are given, watermarks are not
made but the last; every keyed operator is fed sorted by key and time. What cannot end is refused.
Does not know: engines, sorting."""

from __future__ import annotations

from dataclasses import replace

from millstream.connector.source import Boundedness
from millstream.errors import UserError
from millstream.functions import Function, ReduceFunction
from millstream.graph.stream_graph import StreamEdge, StreamGraph, StreamNode
from millstream.runtime.operator import OperatorSpec
from millstream.runtime.operators.final_reduce import FinalReduceSpec
from millstream.runtime.operators.reduce import ReduceSpec
from millstream.runtime.operators.reinterpret import ReinterpretSpec
from millstream.runtime.operators.sorted_window import SortedWindowSpec, can_be_sorted
from millstream.runtime.operators.source import SourceSpec
from millstream.runtime.operators.timestamps import TimestampsSpec
from millstream.runtime.operators.window import WindowSpec
from millstream.runtime.partitioners import ElidedHash, Forward, Hash


class UnboundedInBatch(UserError):
    """A batch job was asked for, but a source does not end."""

    hint = "bound the source, or set execution.runtime-mode to STREAMING or AUTOMATIC"

    def __init__(self, sources: list[str]) -> None:
        self.sources = sources
        names = ", ".join(f"'{name}'" for name in sources)
        super().__init__(f"in BATCH mode every source must end, but {names} never does")


def for_mode(graph: StreamGraph, mode: str, *, combine: bool = False) -> StreamGraph:
    """The graph as it runs in a runtime mode: STREAMING, BATCH or AUTOMATIC.

    `combine`: a batch may fold records before they are sent with any reduce function, not only those that say so."""
    endless = [
        node.name
        for node in graph.nodes
        if node.source is not None and node.source.boundedness() is not Boundedness.BOUNDED
    ]
    if mode == "STREAMING" or (mode == "AUTOMATIC" and endless):
        return graph
    if endless:
        raise UnboundedInBatch(endless)
    return as_batch(graph, combine=combine)


def as_batch(graph: StreamGraph, *, combine: bool = False) -> StreamGraph:
    """The graph as a batch job."""
    nodes = tuple(replace(node, spec=_spec(node.spec)) for node in graph.nodes)
    edges = tuple(_edge(edge, graph, combine) for edge in graph.edges)
    return replace(graph, nodes=nodes, edges=edges, batch=True)


def _spec(spec: OperatorSpec) -> OperatorSpec:
    match spec:
        case SourceSpec(strategy=strategy) | TimestampsSpec(strategy=strategy):
            return replace(spec, strategy=replace(strategy, generator=None, idle_timeout=None, alignment=None))
        case ReduceSpec(function=function, key=key):
            return FinalReduceSpec(function, key)
        case WindowSpec() if can_be_sorted(spec):
            return SortedWindowSpec(spec)
    return spec


def _edge(edge: StreamEdge, graph: StreamGraph, combine: bool) -> StreamEdge:
    """What is keyed without an exchange must be sorted all the same; what is reduced may be reduced before."""
    upstream, downstream = graph.node(edge.upstream), graph.node(edge.downstream)
    spec, partitioner = downstream.spec, edge.partitioner
    if isinstance(partitioner, ElidedHash):
        return replace(edge, partitioner=Hash(partitioner.key, downstream.max_parallelism))
    if isinstance(spec, ReduceSpec) and isinstance(partitioner, Hash) and _combines(spec.function, combine):
        return replace(edge, partitioner=replace(partitioner, reduce=spec.function))
    if isinstance(upstream.spec, ReinterpretSpec) and isinstance(edge.partitioner, Forward) and _is_keyed(downstream):
        return replace(edge, partitioner=Hash(upstream.spec.key, downstream.max_parallelism))
    return edge


def _combines(function: ReduceFunction, combine: bool) -> bool:
    """Whether the order of records does not show in the result; one that is opened belongs to its own operator."""
    if getattr(function, "order_free", False):
        return True
    return combine and type(function).open is Function.open


def _is_keyed(node: StreamNode) -> bool:
    return node.key_type is not None
