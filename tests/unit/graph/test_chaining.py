from dataclasses import replace

import pytest
from small_graphs import by_key, graph, partitioned, plan, sink, source, step

from millstream.errors import UserError
from millstream.graph.chaining import ChainBreak, chain_break
from millstream.graph.stream_graph import StreamGraph
from millstream.graph.transformations import Chaining, Input
from millstream.runtime.partitioners import Broadcast, Forward, Global, Rebalance, Rescale, Shuffle
from millstream.types.factory import Types


def reason(program: StreamGraph, upstream: int = 1, downstream: int = 2) -> ChainBreak | None:
    edge = next(edge for edge in program.edges if (edge.upstream, edge.downstream) == (upstream, downstream))
    return chain_break(program, edge)


def pair(upstream: dict | None = None, downstream: dict | None = None, **more: object) -> StreamGraph:
    return graph(source(1, "s", **(upstream or {})), step(2, "m", 1, **(downstream or {})), **more)


def test_forward_edges_with_equal_parallelism_are_chained():
    assert reason(pair()) is None
    assert reason(graph(source(1, "s"), step(2, "m", partitioned(1, Forward())))) is None


@pytest.mark.parametrize(
    "partitioner", [Rebalance(), Rescale(), Shuffle(), Broadcast(), Global(), by_key(1).partitioner]
)
def test_repartitioning_breaks_the_chain_even_at_parallelism_one(partitioner):
    program = graph(source(1, "s"), step(2, "m", partitioned(1, partitioner)), parallelism=1)
    assert reason(program) is ChainBreak.PARTITIONING


def test_another_parallelism_breaks_the_chain():
    program = pair()
    changed = replace(program, nodes=(program.nodes[0], replace(program.nodes[1], parallelism=3)))
    assert reason(changed) is ChainBreak.PARALLELISM


def test_another_parallelism_is_rebalanced_unless_forward_is_requested():
    assert pair(downstream={"parallelism": 1}).edges[0].partitioner == Rebalance()
    with pytest.raises(UserError, match="forward from 's'"):
        graph(source(1, "s"), step(2, "m", partitioned(1, Forward()), parallelism=1))


def test_another_max_parallelism_breaks_the_chain():
    mixed = pair(downstream={"max_parallelism": 64})
    assert reason(mixed) is None, "as in Flink, unless the option says otherwise"
    assert reason(replace(mixed, chains_mixed_max_parallelism=False)) is ChainBreak.MAX_PARALLELISM


def test_a_union_and_a_second_input_break_the_chain():
    for second in (Input(3), Input(3, side=1)):
        program = graph(source(1, "s"), source(3, "t"), step(2, "m", 1, second))
        assert reason(program) is reason(program, 3, 2) is ChainBreak.INPUTS


def test_another_slot_sharing_group_breaks_the_chain_and_is_inherited():
    program = graph(source(1, "s"), step(2, "m", 1, slot_group="heavy"), step(3, "n", 2))
    assert reason(program) is ChainBreak.SLOT_GROUP
    assert reason(program, 2, 3) is None
    assert program.node(3).slot_group == "heavy"


def test_inputs_of_two_groups_lead_to_the_default_group():
    program = graph(source(1, "s", slot_group="a"), source(2, "t", slot_group="b"), step(3, "u", 1, 2))
    assert program.node(3).slot_group == "default"


def test_chaining_can_be_disabled():
    assert reason(pair(chaining=False)) is ChainBreak.DISABLED


@pytest.mark.parametrize(
    ("upstream", "downstream", "expected"),
    [
        (Chaining.ALWAYS, Chaining.HEAD, ChainBreak.REQUESTED),
        (Chaining.ALWAYS, Chaining.NEVER, ChainBreak.REQUESTED),
        (Chaining.NEVER, Chaining.ALWAYS, ChainBreak.REQUESTED),
        (Chaining.HEAD, Chaining.ALWAYS, None),
    ],
)
def test_a_new_chain_can_be_requested(upstream, downstream, expected):
    assert reason(pair({"chaining": upstream}, {"chaining": downstream})) is expected


def test_a_fork_stays_one_chain_and_a_diamond_does_not():
    forked = plan(source(1, "s"), step(2, "a", 1), step(3, "b", 1))
    assert [vertex.name for vertex in forked.job.vertices] == ["s -> a -> b"]
    joined = plan(source(1, "s"), step(2, "a", 1), step(3, "b", 1), sink(4, "u", 2, 3))
    assert [vertex.name for vertex in joined.job.vertices] == ["s -> a -> b", "u"]


def test_a_side_output_can_be_chained():
    side = {"side_types": {"late": Types.STRING()}}
    fused = plan(source(1, "s", **side), sink(2, "late", Input(1, tag="late")))
    assert [edge.tag for edge in fused.job.vertices[0].inner] == ["late"]
