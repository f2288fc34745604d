import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from small_graphs import by_key, diamond, graph, linear, partitioned, plan, sink, source, step

from millstream.graph import explain
from millstream.graph.transformations import Input
from millstream.runtime.partitioners import Broadcast, Custom, Forward, Global, Rebalance, Rescale, Shuffle
from millstream.types.factory import Types

RECORDED = Path(__file__).parent / "flink_plan.json"

LINEAR = """\
job 'totals': 2 levels, 2 vertices, 1 exchange, 2 slots

level 0
  [1] parallelism 2 (at most 128)
      source  Source: orders  uid orders  9fd3ef6823b210f838bd15fd1135d4f4
              Map                         5a719e9a000cf6e7e9677dd0ba880c33
      -> [2]  HASH  from Map  records are repartitioned

level 1
  [2] parallelism 2 (at most 128), key groups 0-63 64-127
      keyed  Window                   uid totals  73746fbef56baa3aa5bc0f6f62f00f6c
      sink   Sink: Print to Std. Out              56866ea134a9edbbb38460914eeaa765
"""


def test_the_text_of_a_linear_plan():
    assert explain.text(linear()) == LINEAR


def test_the_text_names_side_outputs_inputs_and_reasons():
    lines = explain.text(diamond()).splitlines()
    assert "      -> [3]  REBALANCE 'late'  from split  records are repartitioned" in lines
    assert "      -> [5] input 2  HASH  records are repartitioned" in lines
    assert "      -> [6]  FORWARD  from Late  the operator has several inputs" in lines


def test_a_forked_chain_is_shown_as_a_tree():
    forked = plan(source(1, "s"), step(2, "a", 1), step(3, "b", 1), sink(4, "under a", 2), sink(5, "under b", 3))
    rows = explain.chain_rows(forked.vertices[0].vertex)
    assert [(row.depth, row.node.name) for row in rows] == [
        (0, "s"),
        (1, "a"),
        (1, "under a"),
        (1, "b"),
        (1, "under b"),
    ]


def test_many_key_group_ranges_are_shortened():
    wide = plan(source(1, "s"), step(2, "k", by_key(1), key_type=Types.STRING()), parallelism=64)
    assert "key groups 0-1 2-3 4-5 6-7 8-9 10-11 ... 126-127\n" in explain.text(wide)


def test_the_json_is_that_of_the_real_flink():
    side = {"side_types": {"late": Types.STRING()}}
    window = "Window(TumblingEventTimeWindows(1000, 0), EventTimeTrigger, Count)"
    ours = graph(
        source(1, "Source: Collection Source", readers=1),
        source(2, "Source: Collection Source", readers=1),
        step(3, "Filter", 2),
        step(4, "split", 1, **side),
        step(5, "Co-Map", 4, Input(3, side=1)),
        step(7, "shuffled", partitioned(5, Shuffle())),
        step(9, "broadcast", partitioned(5, Broadcast())),
        step(11, "rescaled", partitioned(5, Rescale())),
        step(13, "forwarded", partitioned(5, Forward())),
        step(15, "Map", Input(4, tag="late")),
        step(17, "Map", partitioned(15, Rebalance()), parallelism=1),
        sink(18, "Sink: Print to Std. Out", 17),
        step(20, "_stream_key_by_map_operator", 4, 3),
        step(22, "TumblingEventTimeWindows", by_key(20), key_type=Types.STRING(), description=window),
        sink(23, "Sink: Print to Std. Out", 22),
    )
    assert json.loads(explain.flink_json(ours)) == json.loads(RECORDED.read_text())


def test_global_and_custom_have_flinks_spelling():
    custom = Custom(by_key(1).partitioner.key, lambda key, count: 0)
    ours = graph(source(1, "s"), step(2, "a", partitioned(1, Global())), step(3, "b", partitioned(1, custom)))
    nodes = json.loads(explain.flink_json(ours))["nodes"]
    assert [node["predecessors"][0]["ship_strategy"] for node in nodes[1:]] == ["GLOBAL", "CUSTOM"]


@given(st.text())
def test_a_name_cannot_break_a_line_of_the_text(name):
    named = explain.text(plan(source(1, name), name=name))
    assert len(named.splitlines()) == 5
    assert named.replace("\n", "").isprintable()


@given(st.text())
def test_a_name_cannot_leave_its_quotes_in_mermaid(name):
    drawn = explain.mermaid(plan(source(1, name), step(2, "next", partitioned(1, Rebalance()))))
    plain = explain.mermaid(plan(source(1, "name"), step(2, "next", partitioned(1, Rebalance()))))
    assert len(drawn.splitlines()) == len(plain.splitlines())
    assert drawn.count('"') == plain.count('"')
    assert not set("<>`[]{}|") & set(drawn.splitlines()[3].split('"')[1])


def test_mermaid_has_a_box_for_each_level_and_chain():
    drawn = explain.mermaid(diamond())
    assert drawn.count("subgraph L") == 4
    assert drawn.count("subgraph V") == 6
    assert """  N2 -->|"REBALANCE 'late'"| N4""" in drawn
