"""State as user code sees it: views of one key, Flink's rules of time to live, and operator state."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.functions import AggregateFunction
from millstream.state.backend import OperatorState
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.state.store import ABSENT
from millstream.state.views import (
    Scope,
    create_broadcast_view,
    create_operator_list_view,
    create_view,
)
from millstream.state_descriptors.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millstream.times import Time
from millstream.types.factory import Types

LONG = Types.LONG()


def new_state():
    return OperatorState(range_of(0, 1, 128), 0, 1, KeyGrouper(128), Types.STRING())


@pytest.fixture
def scope():
    made = Scope()
    made.key = "a"
    return made


def with_ttl(descriptor, millis=10, on_read=False, show_expired=False):
    builder = StateTtlConfig.new_builder(Time.milliseconds(millis))
    if on_read:
        builder.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)
    if show_expired:
        builder.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)
    descriptor.enable_time_to_live(builder.build())
    return descriptor


class Mean(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a, acc_b):
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


DESCRIPTORS = {
    "value": lambda: ValueStateDescriptor("it", LONG),
    "list": lambda: ListStateDescriptor("it", LONG),
    "map": lambda: MapStateDescriptor("it", Types.STRING(), LONG),
    "reducing": lambda: ReducingStateDescriptor("it", operator.add, LONG),
    "aggregating": lambda: AggregatingStateDescriptor("it", Mean(), Types.PICKLED_BYTE_ARRAY()),
}
WRITES = {
    "value": lambda view: view.update(1),
    "list": lambda view: view.add(1),
    "map": lambda view: view.put("k", 1),
    "reducing": lambda view: view.add(1),
    "aggregating": lambda view: view.add(1),
}
READS = {
    "value": lambda view: view.value(),
    "list": lambda view: list(view.get()),
    "map": lambda view: dict(view.items()),
    "reducing": lambda view: view.get(),
    "aggregating": lambda view: view.get(),
}
NOTHING = {"value": None, "list": [], "map": {}, "reducing": None, "aggregating": None}


@pytest.mark.parametrize("kind", DESCRIPTORS)
def test_a_key_has_its_own_state_and_none_after_clear(kind, scope):
    view = create_view(DESCRIPTORS[kind](), new_state(), scope)
    WRITES[kind](view)
    scope.key = "b"
    assert READS[kind](view) == NOTHING[kind]
    scope.key = "a"
    assert READS[kind](view) != NOTHING[kind]
    view.clear()
    assert READS[kind](view) == NOTHING[kind]


@pytest.mark.parametrize("scoped", [False, True])
@pytest.mark.parametrize("kind", DESCRIPTORS)
def test_state_in_a_scope_with_namespaces_belongs_to_the_namespace(kind, scoped, scope):
    view = create_view(DESCRIPTORS[kind](), new_state(), scope, scoped=scoped)
    scope.namespace = None
    WRITES[kind](view)
    if scoped:
        scope.namespace = "w"
        assert READS[kind](view) == NOTHING[kind]


@pytest.mark.parametrize("kind", DESCRIPTORS)
def test_a_value_expires_in_the_millisecond_after_its_time_to_live(kind, scope):
    state = new_state()
    view = create_view(with_ttl(DESCRIPTORS[kind]()), state, scope)
    scope.now = 100
    WRITES[kind](view)
    scope.now = 109
    seen = READS[kind](view)
    assert seen != NOTHING[kind]
    scope.now = 110
    assert READS[kind](view) == NOTHING[kind]
    assert state.tables["user/it"].get(None, "a") is ABSENT, "reading cleans up"


@pytest.mark.parametrize("show_expired", [False, True])
@pytest.mark.parametrize("kind", DESCRIPTORS)
def test_reading_extends_the_time_to_live_only_if_configured(kind, show_expired, scope):
    view = create_view(with_ttl(DESCRIPTORS[kind](), on_read=True, show_expired=show_expired), new_state(), scope)
    scope.now = 100
    WRITES[kind](view)
    for now in (109, 118, 127):
        scope.now = now
        assert READS[kind](view) != NOTHING[kind]
    scope.now = 137
    assert (READS[kind](view) != NOTHING[kind]) is show_expired
    assert READS[kind](view) == NOTHING[kind]


@pytest.mark.parametrize("kind", DESCRIPTORS)
def test_writing_restarts_the_time_to_live(kind, scope):
    view = create_view(with_ttl(DESCRIPTORS[kind]()), new_state(), scope)
    scope.now = 100
    WRITES[kind](view)
    scope.now = 105
    WRITES[kind](view)
    scope.now = 114
    assert READS[kind](view) != NOTHING[kind]


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from("xyz"), st.sampled_from("prci")), max_size=25))
def test_a_map_with_a_time_to_live_agrees_with_a_dictionary(steps):
    scope, model, now = Scope(), {}, 0
    scope.key = "a"
    view = create_view(with_ttl(DESCRIPTORS["map"]()), new_state(), scope)
    for wait, key, what in steps:
        now += wait
        scope.now = now
        living = {k: number for k, (number, at) in model.items() if at + 10 > now}
        if what == "p":
            view.put(key, now)
            model[key] = (now, now)
        elif what == "r":
            view.remove(key)
            model.pop(key, None)
        elif what == "c":
            assert (view.contains(key), view.get(key)) == (key in living, living.get(key))
        else:
            assert dict(view.items()) == living
            assert view.is_empty() is not bool(living)


def test_a_returned_list_is_a_copy(scope):
    view = create_view(DESCRIPTORS["list"](), new_state(), scope)
    view.add_all([1, 2])
    read = view.get()
    view.add(3)
    assert list(read) == [1, 2]
    given = [7]
    view.update(given)
    given.append(8)
    assert list(view.get()) == [7]


@pytest.mark.parametrize("ttl", [False, True])
@pytest.mark.parametrize(("kind", "merged"), [("list", [1, 1, 1]), ("reducing", 3), ("aggregating", 1.0)])
def test_merging_namespaces_moves_everything_to_the_target(kind, merged, ttl, scope):
    descriptor = with_ttl(DESCRIPTORS[kind]()) if ttl else DESCRIPTORS[kind]()
    view = create_view(descriptor, new_state(), scope, scoped=True)
    for namespace in ("one", "two", "three"):
        scope.namespace = namespace
        WRITES[kind](view)
    view.merge_namespaces("two", ["one", "three", "empty"])
    found = {}
    for namespace in ("one", "two", "three", "empty"):
        scope.namespace = namespace
        found[namespace] = READS[kind](view)
    nothing = NOTHING[kind]
    assert found == {"one": nothing, "two": merged, "three": nothing, "empty": nothing}


def test_a_list_of_an_operator_keeps_its_order():
    view = create_operator_list_view(ListStateDescriptor("it", LONG), new_state(), union=False)
    view.add_all(range(15))
    view.add(15)
    assert list(view.get()) == list(range(16))
    view.update([3, 1])
    assert list(view.get()) == [3, 1]
    view.clear()
    assert list(view.get()) == []


def test_broadcast_state_is_a_map():
    view = create_broadcast_view(MapStateDescriptor("it", Types.STRING(), LONG), new_state())
    view.put_all({"x": 1, "y": 2})
    view.remove("x")
    view.put("z", 3)
    assert (dict(view.items()), view.get("x"), view.contains("z"), list(view)) == (
        {"y": 2, "z": 3},
        None,
        True,
        ["y", "z"],
    )
    view.clear()
    assert view.is_empty()
