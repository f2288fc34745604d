"""Rewrites a stream graph for batch execution mode.

Promises: rolling aggregations emit final results only; timestamps are assigned, but no watermark is emitted except the
last one; every keyed operator reads input sorted by key and time. Unbounded sources are refused.
Does not know: engines, sorting."""

from __future__ import annotations

from dataclasses import replace

from millstream.connector.source import Boundedness
from millstream.errors import UserError
from millstream.functions import Function, ReduceFunction
from millstream.graph.loops import find_loops
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
    """BATCH mode is set, but a source is unbounded."""

    hint = "bound the source, or set execution.runtime-mode to STREAMING or AUTOMATIC"

    def __init__(self, sources: list[str]) -> None:
        self.sources = sources
        names = ", ".join(f"'{name}'" for name in sources)
        super().__init__(f"in BATCH mode every source must be bounded, but {names} is unbounded")


class IterationInBatch(UserError):
    """BATCH mode is set, but the program has an iteration."""

    hint = "set execution.runtime-mode to STREAMING or AUTOMATIC: an iteration over bounded input ends all the same"

    def __init__(self) -> None:
        super().__init__("a program with an iteration cannot run in BATCH mode")


def rewrite_for_mode(graph: StreamGraph, mode: str, *, combine: bool = False) -> StreamGraph:
    """Return the graph for a runtime mode: STREAMING, BATCH or AUTOMATIC.

    With `combine`, a batch job runs a combiner before the exchange for every reduce function, not only for those that
    declare it."""
    unbounded = [
        node.name
        for node in graph.nodes
        if node.source is not None and node.source.boundedness() is not Boundedness.BOUNDED
    ]
    iterates = bool(find_loops(graph.nodes, graph.edges))  # this also raises for iterations that cannot run
    if mode == "STREAMING" or (mode == "AUTOMATIC" and (unbounded or iterates)):
        return graph
    if iterates:
        raise IterationInBatch
    if unbounded:
        raise UnboundedInBatch(unbounded)
    return to_batch(graph, combine=combine)


def to_batch(graph: StreamGraph, *, combine: bool = False) -> StreamGraph:
    """Return the graph of the batch job."""
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
    """Return an edge of the batch job: keyed input without an exchange gets one, because it must be sorted; a reduce
    may get a combiner."""
    upstream, downstream = graph.node(edge.upstream), graph.node(edge.downstream)
    spec, partitioner = downstream.spec, edge.partitioner
    if isinstance(partitioner, ElidedHash):
        return replace(edge, partitioner=Hash(partitioner.key, downstream.max_parallelism))
    if isinstance(spec, ReduceSpec) and isinstance(partitioner, Hash) and _can_combine(spec.function, combine):
        return replace(edge, partitioner=replace(partitioner, reduce=spec.function))
    if isinstance(upstream.spec, ReinterpretSpec) and isinstance(edge.partitioner, Forward) and _is_keyed(downstream):
        return replace(edge, partitioner=Hash(upstream.spec.key, downstream.max_parallelism))
    return edge


def _can_combine(function: ReduceFunction, combine: bool) -> bool:
    """Whether a combiner may call the function: the order of records must not matter, and it must not need `open`."""
    if getattr(function, "order_free", False):
        return True
    return combine and type(function).open is Function.open


def _is_keyed(node: StreamNode) -> bool:
    return node.key_type is not None
