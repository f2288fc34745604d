"""State tables as Parquet: any reader can read them, and values equal those written."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.state import canonical, deltas
from millstream.state.deltas import Changes, TableSchema
from millstream.types.factory import Types
from millstream.types.row import Row
from millstream.windows.window import CountWindow, TimeWindow

OBJECTS = Types.PICKLED_BYTE_ARRAY()


def write_parquet(schema, changes, groups=None):
    table = canonical.to_table(
        schema.describe(), schema.key_type, schema.value_type, changes.namespaces, changes.keys, changes.values, groups
    )
    return canonical.to_parquet(table)


def entries(keys, values, namespaces=None):
    return Changes(namespaces or [None] * len(keys), keys, [False] * len(keys), values)


def read_back(schema, data):
    ((name, _, changes),) = deltas.decode(data, {schema.name: schema})
    assert name == schema.name
    return list(changes.rows())


PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.tuples(inner, inner),
        st.just(()),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.one_of(st.integers(), st.text(), st.tuples(st.text(), st.integers())), VALUES, min_size=1))
def test_untyped_state_survives_a_round_trip_exactly(state):
    schema = TableSchema("user/x", OBJECTS, OBJECTS)
    found = read_back(schema, write_parquet(schema, entries(list(state), list(state.values()))))
    assert {key: value for _, key, _, value in found} == state
    for _, key, _, value in found:
        assert_same(value, state[key])


def assert_same(one, other):
    """Equal, and of the same types all the way down: 1 is not True, and a list is no tuple."""
    assert type(one) is type(other)
    if isinstance(one, list | tuple):
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])


def test_plain_objects_are_typed_columns():
    schema = TableSchema("user/x", OBJECTS, OBJECTS)
    data = write_parquet(schema, entries(["a", "b"], [(1, 0.5), None]), np.array([3, 4]))
    table = pq.read_table(io.BytesIO(data))
    assert table.column_names == ["key_group", "key", "value"]
    assert table.schema.field("key").type == pa.string()
    assert table.to_pylist()[0] == {"key_group": 3, "key": "a", "value": {"f0": 1, "f1": 0.5}}


@pytest.mark.parametrize(
    ("namespaces", "columns"),
    [
        ([TimeWindow(0, 5), TimeWindow(5, 10)], ["window_start", "window_end"]),
        ([CountWindow(1), CountWindow(2)], ["window_id"]),
        ([60, 120], ["namespace"]),
        ([TimeWindow(0, 5), CountWindow(2)], ["namespace"]),
    ],
    ids=["time", "count", "number", "mixed"],
)
def test_windows_are_columns(namespaces, columns):
    schema = TableSchema("user/x", Types.STRING(), Types.LONG())
    data = write_parquet(schema, entries(["a", "b"], [1, 2], namespaces))
    assert pq.read_table(io.BytesIO(data)).column_names == [*columns, "key", "value"]
    assert [namespace for namespace, *_ in read_back(schema, data)] == namespaces


def test_rows_and_records_without_fields():
    schema = TableSchema("user/x", OBJECTS, OBJECTS)
    rows = [Row(a=1, b="x"), Row(a=2, b="y")]
    found = [value for *_, value in read_back(schema, write_parquet(schema, entries([1, 2], rows)))]
    assert found == rows
    assert [row.as_dict() for row in found] == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    empty = TableSchema("user/x", OBJECTS, Types.TUPLE([]))
    assert read_back(empty, write_parquet(empty, entries([1], [()])))[0][3] == ()


@pytest.mark.parametrize("damage", [b"PAR1", b"PAR1 and nothing like it PAR1"])
def test_damage_is_reported(damage):
    with pytest.raises(canonical.UnreadableTable):
        deltas.describe(damage)
    with pytest.raises(canonical.UnreadableTable):
        list(deltas.decode(damage, {}))
