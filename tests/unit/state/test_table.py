"""A table returns the rows that were put, whichever worker wrote them and by any method of access."""

from hypothesis import example, given
from hypothesis import strategies as st

from millstream.state.deltas import TableSchema
from millstream.state.store import ABSENT
from millstream.state.table import StateTable
from millstream.types.factory import Types
from millstream.windows.window import TimeWindow

NAMESPACES = (None, TimeWindow(0, 10), 7)


def table():
    return StateTable(TableSchema("t", Types.STRING(), Types.LONG()), None)


places = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from("abc"))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), places, st.integers(0, 9)),
        st.tuples(st.just("delete"), places, st.none()),
        st.tuples(st.just("clear"), places, st.none()),
        st.tuples(st.just("settle"), st.none(), st.none()),
        st.tuples(st.just("scan"), places, st.none()),
    ),
    max_size=30,
)


@example([("scan", (7, "a"), None), ("put", (7, "a"), 1), ("scan", (7, "a"), None)], True)
@example([("scan", (7, "a"), None), ("put", (7, "a"), 1), ("scan", (7, "a"), None)], False)
@given(steps, st.booleans())
def test_a_table_and_its_changes_agree_with_a_dictionary(todo, directly):
    tested, model, changed = table(), {}, {}
    live, dirty = tested.by_scoped_key() if directly else (None, None)
    for name, place, value in todo:
        if name == "settle":
            found = {(space, key): None if gone else value for space, key, gone, value in tested.changes().rows()}
            assert found == changed
            tested.end_epoch(None)
            assert not tested.has_changes
            changed = {}
            continue
        namespace, key = place
        if name == "scan":
            assert dict(tested.scan(namespace)) == {k: v for (n, k), v in model.items() if n == namespace}
            assert set(tested.namespaces()) == {n for n, _ in model}
        elif name == "clear":
            tested.clear_namespace(namespace)
            for gone in [each for each in model if each[0] == namespace]:
                changed[gone] = None
                del model[gone]
        elif name == "delete":
            tested.delete(namespace, key)
            model.pop(place, None)
            changed[place] = None
        else:
            if directly and namespace is not None:
                live[place] = dirty[place] = value
            else:
                tested.put(namespace, key, value)
            model[place] = changed[place] = value
        assert tested.get(namespace, key) == model.get(place, ABSENT)
    content = tested.entries()
    assert dict(zip(zip(content.namespaces, content.keys, strict=True), content.values, strict=True)) == model
