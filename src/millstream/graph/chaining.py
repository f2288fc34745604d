"""Operator chaining: whether an edge is chained, and if not, why.

Promises: Flink's rules; an edge that is not chained has a readable reason.
Does not know: the graph beyond the two ends of the edge and the inputs of its downstream operator."""

from __future__ import annotations

from enum import Enum

from millstream.graph.stream_graph import StreamEdge, StreamGraph
from millstream.graph.transformations import Chaining
from millstream.runtime.operators.loop import TailSpec
from millstream.runtime.partitioners import Forward, Rebalance


class ChainBreak(Enum):
    """Why an edge must be an exchange."""

    DISABLED = "operator chaining is switched off for the program"
    PARTITIONING = "records are repartitioned"
    PARALLELISM = "parallelism differs"
    MAX_PARALLELISM = "max parallelism differs"
    INPUTS = "the operator has several inputs"
    SLOT_GROUP = "slot sharing groups differ"
    REQUESTED = "start_new_chain() or disable_chaining() was called"


def chain_break(graph: StreamGraph, edge: StreamEdge) -> ChainBreak | None:
    """Return why this edge must be an exchange; None if its two operators can be chained."""
    upstream, downstream = graph.node(edge.upstream), graph.node(edge.downstream)
    if not isinstance(edge.partitioner, Forward | Rebalance):
        return ChainBreak.PARTITIONING
    # forward was replaced by rebalance, because the parallelisms differ
    if upstream.parallelism != downstream.parallelism:
        return ChainBreak.PARALLELISM
    if isinstance(edge.partitioner, Rebalance):
        return ChainBreak.PARTITIONING
    if len(graph.inputs(edge.downstream)) > 1:
        return ChainBreak.INPUTS
    if upstream.slot_group != downstream.slot_group:
        return ChainBreak.SLOT_GROUP
    if not graph.chaining:
        return ChainBreak.DISABLED
    may_differ = graph.chains_mixed_max_parallelism and not isinstance(downstream.spec, TailSpec)
    # not chained, because a tail is rescaled with its head
    if upstream.max_parallelism != downstream.max_parallelism and not may_differ:
        return ChainBreak.MAX_PARALLELISM
    if upstream.chaining is Chaining.NEVER or downstream.chaining is not Chaining.ALWAYS:
        return ChainBreak.REQUESTED
    return None
