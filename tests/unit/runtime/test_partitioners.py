"""The target subtask of a record depends on the plan, the record and the records before it, never on how input is cut
into epochs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.runtime.batch import Batch
from millstream.runtime.keys import KeySelection
from millstream.runtime.partitioners import (
    Broadcast,
    Custom,
    Forward,
    Global,
    Hash,
    PartitionOutOfRange,
    Rebalance,
    Rescale,
    Router,
    Shuffle,
)
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.state.key_groups import key_group, subtask_of
from millstream.types.factory import Types
from millstream.types.row import Row

ANY = Types.PICKLED_BYTE_ARRAY()
ITSELF = KeySelection(ANY, selector=lambda value: value)


def route(router, *batches):
    """{target: its rows in order}."""
    found = {}
    for rows in batches:
        batch = rows if isinstance(rows, Batch) else Batch(ANY, rows=list(rows))
        for target, part in router.split(batch):
            found.setdefault(target, []).extend(part.rows())
    return found


@given(st.lists(st.integers() | st.text(max_size=4)), st.integers(1, 5), st.integers(0, 30))
def test_hash_agrees_with_key_groups_and_keeps_order(keys, targets, cut):
    router = Router(Hash(ITSELF, 32), "op", 0, 1, targets)
    expected = {}
    for key in keys:
        expected.setdefault(subtask_of(key_group(key, 32), targets, 32), []).append(key)
    assert route(router, keys[:cut], keys[cut:]) == expected


def test_hash_by_field_is_the_same_on_columns_and_on_rows():
    kind = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
    rows = [Row(k=f"key{n % 40}", v=n) for n in range(80)]
    by_field = Hash(KeySelection(Types.STRING(), field="k"), 128)
    columns = route(Router(by_field, "op", 0, 1, 3), Batch(kind, array=kind.to_arrow(rows)))
    assert columns == route(Router(by_field, "op", 0, 1, 3), Batch(kind, rows=rows))
    assert len(columns) == 3


def test_hash_does_not_use_the_keys_of_an_earlier_exchange():
    router = Router(Hash(ITSELF, 32), "op", 0, 1, 4)
    fresh = route(router, [1, 2, 3, 4, 5])
    assert route(router, Batch(ANY, rows=[1, 2, 3, 4, 5], keys=["same"] * 5)) == fresh
    assert len(fresh) > 1


@given(st.lists(st.lists(st.integers(), max_size=7)), st.integers(1, 4))
def test_rebalance_is_round_robin_across_batches(parts, targets):
    rows = [value for part in parts for value in part]
    router = Router(Rebalance(), "op", 0, 1, targets)
    assert route(router, *parts) == {t: rows[t::targets] for t in range(targets) if rows[t::targets]}


def test_rebalance_continues_where_the_last_epoch_stopped():
    router = Router(Rebalance(), "op", 0, 1, 3)
    route(router, [1, 2])
    later = Router(Rebalance(), "op", 0, 1, 3)
    later.position = router.position
    assert route(later, ["next"]) == {2: ["next"]}


@pytest.mark.parametrize(("upstream", "targets"), [(2, 4), (4, 2), (2, 3), (3, 2), (3, 3), (1, 5), (5, 1)])
def test_rescale_reaches_every_subtask_from_neighbours_only(upstream, targets):
    near = [Router(Rescale(), "op", up, upstream, targets).reachable() for up in range(upstream)]
    assert {target for part in near for target in part} == set(range(targets))
    assert all(list(part) == list(range(part[0], part[-1] + 1)) for part in near)
    assert sum(map(len, near)) == max(upstream, targets), "no two share more than they must"
    for up, part in enumerate(near):
        assert set(route(Router(Rescale(), "op", up, upstream, targets), range(20))) == set(part)


def test_broadcast_sends_to_all_subtasks_and_global_to_the_first():
    assert route(Router(Broadcast(), "op", 0, 1, 3), [1, 2]) == {0: [1, 2], 1: [1, 2], 2: [1, 2]}
    assert route(Router(Global(), "op", 1, 2, 3), [1, 2]) == {0: [1, 2]}
    assert route(Router(Forward(), "op", 1, 2, 2), [1, 2]) == {1: [1, 2]}


def test_shuffle_is_seeded_by_the_plan():
    def draw(epoch, subtask):
        router = Router(Shuffle(), "op", subtask, 2, 4)
        router.seed(epoch, 7)
        return route(router, range(40))

    assert draw(1, 0) == draw(1, 0)
    assert draw(1, 0) != draw(2, 0)
    assert draw(1, 0) != draw(1, 1)
    assert set(draw(1, 0)) == {0, 1, 2, 3}


def test_custom_sends_to_the_subtask_of_the_function():
    router = Router(Custom(ITSELF, lambda key, count: key % count), "op", 0, 1, 3)
    assert route(router, [3, 4, 5, 6]) == {0: [3, 6], 1: [4], 2: [5]}


@pytest.mark.parametrize("answer", [3, -1, None, "0", 1.0])
def test_custom_out_of_range_names_operator_and_result(answer):
    router = Router(Custom(ITSELF, lambda _key, _count: answer), "my op", 0, 1, 3)
    with pytest.raises(PartitionOutOfRange, match=r"after 'my op' chose subtask .* of 3.*from 0 to 2"):
        route(router, [1])


def test_a_failing_selector_or_partitioner_is_a_user_error():
    def broken(*_):
        raise ValueError("mine")

    for partitioner in (Hash(KeySelection(ANY, selector=broken), 128), Custom(ITSELF, broken)):
        with pytest.raises(UserFunctionFailed, match=r"in broken\n.*\n.*ValueError: mine"):
            route(Router(partitioner, "op", 0, 1, 3), [1])


def test_parts_keep_their_timestamps():
    batch = Batch(ANY, rows=[0, 1, 2, 3], timestamps=np.array([10, 11, 12, 13]))
    parts = dict(Router(Rebalance(), "op", 0, 1, 2).split(batch))
    assert {target: part.times() for target, part in parts.items()} == {0: [10, 12], 1: [11, 13]}
