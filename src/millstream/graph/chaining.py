"""Why an edge is fused or not.

Promises: Flink's rules; a broken chain has a reason that a person can read.
Does not know: the graph beyond the edge's two ends and how many inputs the lower one has."""

from __future__ import annotations

from enum import Enum

from millstream.graph.stream_graph import StreamEdge, StreamGraph
from millstream.graph.transformations import Chaining
from millstream.runtime.partitioners import Forward, Rebalance


class ChainBreak(Enum):
    """Why an edge must be an exchange."""

    DISABLED = "operator chaining is switched off for the program"
    PARTITIONING = "records are dealt out anew"
    PARALLELISM = "parallelism differs"
    MAX_PARALLELISM = "max parallelism differs"
    INPUTS = "the operator has several inputs"
    SLOT_GROUP = "slot sharing groups differ"
    REQUESTED = "start_new_chain() or disable_chaining() was called"


def chain_break(graph: StreamGraph, edge: StreamEdge) -> ChainBreak | None:
    """Why this edge must be an exchange; None when both ends can run as one."""
    upstream, downstream = graph.node(edge.upstream), graph.node(edge.downstream)
    if not isinstance(edge.partitioner, Forward | Rebalance):
        return ChainBreak.PARTITIONING
    if upstream.parallelism != downstream.parallelism:  # then a forward edge has become a rebalancing one
        return ChainBreak.PARALLELISM
    if isinstance(edge.partitioner, Rebalance):
        return ChainBreak.PARTITIONING
    if len(graph.inputs(edge.downstream)) > 1:
        return ChainBreak.INPUTS
    if upstream.slot_group != downstream.slot_group:
        return ChainBreak.SLOT_GROUP
    if not graph.chaining:
        return ChainBreak.DISABLED
    if upstream.max_parallelism != downstream.max_parallelism and not graph.chains_mixed_max_parallelism:
        return ChainBreak.MAX_PARALLELISM
    if upstream.chaining is Chaining.NEVER or downstream.chaining is not Chaining.ALWAYS:
        return ChainBreak.REQUESTED
    return None
