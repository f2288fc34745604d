import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_graphs import by_key, diamond, graph, linear, plan, sink, source, step, wide

from millstream.graph.stream_graph import EmptyProgram, UidTaken, stream_graph


def ids(*steps: object) -> list[str]:
    return [node.operator for node in graph(*steps).nodes]


def test_an_operator_keeps_its_id_when_another_is_added_after_it():
    steps = [source(1, "s"), step(2, "m", 1), sink(3, "out", 2)]
    assert ids(*steps, sink(4, "another", 2))[:3] == ids(*steps)


def test_an_operator_keeps_its_id_when_it_gets_another_name_or_parallelism():
    assert ids(source(1, "s"), step(2, "m", 1)) == ids(source(1, "t"), step(2, "n", 1, parallelism=1))


def test_an_operator_with_a_uid_keeps_its_id_at_any_position():
    alone = ids(source(1, "s", uid="orders"))
    assert ids(source(1, "new"), source(7, "s", uid="orders"))[1] == alone[0]


@given(st.integers(1, 20), st.data())
def test_ids_are_unique(count, data):
    steps = [source(1, "s")]
    for number in range(2, count + 1):
        above = data.draw(st.lists(st.integers(1, number - 1), max_size=2))
        steps.append(step(number, "same", *above) if above else source(number, "s"))
    assert len(set(ids(*steps))) == count


def test_a_duplicate_uid_is_refused_with_both_names():
    with pytest.raises(UidTaken, match="uid 'a' is used by 's' and by 'm'"):
        graph(source(1, "s", uid="a"), step(2, "m", 1, uid="a"))


def test_a_program_without_operators_is_refused():
    with pytest.raises(EmptyProgram):
        stream_graph([], parallelism=1)


@pytest.mark.parametrize("make", [linear, diamond, wide])
def test_every_exchange_goes_up_and_every_operator_is_in_one_vertex(make):
    made = make()
    levels = {planned.vertex.id: planned.level for planned in made.vertices}
    assert all(levels[edge.upstream] < levels[edge.downstream] for edge in made.job.edges)
    names = [node.id for planned in made.vertices for node in planned.vertex.nodes]
    assert len(names) == len(set(names))


@given(st.integers(1, 40))
def test_key_groups_of_all_subtasks_are_all_key_groups(parallelism):
    keyed = plan(source(1, "s"), step(2, "k", by_key(1)), parallelism=parallelism).vertices[1]
    owned = [group for subtask in range(parallelism) for group in keyed.key_groups(subtask)]
    assert owned == list(range(keyed.task.max_parallelism))


def test_a_source_with_few_readers_is_capped_and_rebalanced():
    capped = graph(source(1, "s", readers=1), step(2, "m", 1), parallelism=4)
    assert [node.parallelism for node in capped.nodes] == [1, 4]
    assert capped.edges[0].partitioner.name == "REBALANCE"
