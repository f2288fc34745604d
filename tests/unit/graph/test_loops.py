"""Iterations in a graph: how they are represented, and what is refused."""

import pytest
from small_graphs import by_key, graph, plan, source, step

from millstream.graph import explain, loops
from millstream.graph.picture import svg
from millstream.graph.transformations import Transformation
from millstream.runtime.loops import LoopConfig
from millstream.runtime.operators.loop import HeadSpec, TailSpec
from millstream.types.factory import Types

LOOP = LoopConfig("rounds", max_rounds=3)


def head(number, **more):
    return Transformation(number, "head", HeadSpec(LOOP, 0, Types.STRING()), Types.STRING(), **more)


def tail(number, *inputs, **more):
    before = step(number, "tail", *inputs).inputs
    return Transformation(number, "tail", TailSpec(LOOP, 0, Types.STRING()), Types.STRING(), before, **more)


def iterating():
    return plan(source(1, "s"), head(2), step(3, "body", by_key(1), by_key(2)), tail(4, 3), step(5, "after", 3))


def test_feedback_is_drawn_in_every_form():
    program = iterating()
    assert "      -> [2]  FEEDBACK  from tail  in the next round" in explain.text(program).splitlines()
    assert "tail" in {explain.operator_category(node) for vertex in program.job.vertices for node in vertex.nodes}
    assert '  N4 -. "FEEDBACK" .-> N2' in explain.mermaid(program).splitlines()
    assert svg(program).count('class="arrow feedback"') == 1


def test_the_body_are_the_operators_between_head_and_tail():
    program = iterating()
    names = {node.operator: node.name for vertex in program.job.vertices for node in vertex.nodes}
    (loop,) = loops.loops_of(program)
    assert [names[operator] for operator in loop.members] == ["head", "body", "tail"]
    assert [names[operator] for operator in loop.sources] == ["s"]


def test_a_tail_has_the_parallelism_of_its_head():
    program = graph(source(1, "s"), head(2, parallelism=1), step(3, "body", by_key(1), by_key(2)), tail(4, 3))
    with pytest.raises(loops.UnusableIteration, match="head and tail of iteration 'rounds' have parallelism 1"):
        loops.find_loops(program.nodes, program.edges)


def test_a_head_needs_a_tail():
    program = graph(source(1, "s"), head(2), step(3, "body", by_key(1), by_key(2)))
    with pytest.raises(loops.UnusableIteration, match="1 variable streams and 0 feedback streams"):
        loops.find_loops(program.nodes, program.edges)
