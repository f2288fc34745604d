"""Merging sessions of parts gives the sessions of all rows, however the rows are divided."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millstream.sql.columns import combine_columns, create_row_array
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.operators import timestamps
from millstream.sql.operators.window.local_sessions import SessionParts, Sessions, create_session_schema
from millstream.sql.types import data_types as t

SCHEMA = t.row_of(["k", "ts", "v"], [t.STRING, t.TimestampType(3), t.BIGINT], null=False)
CALLS = (
    AggregateCall("COUNT", (), t.BIGINT, ()),
    AggregateCall("MAX", (2,), t.BIGINT, (t.BIGINT,)),
    AggregateCall("SUM", (2,), t.BIGINT, (t.BIGINT,)),
)
PARTS = SessionParts("sessions", SCHEMA, (0,), 1, 5, CALLS)
ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 60), st.none() | st.integers(-9, 9)), min_size=1
)


def array(rows: list[Any]) -> pa.Array:
    return create_row_array([(key, timestamps.to_timestamp(time), value) for key, time, value in rows], None, SCHEMA)


def as_rows(sessions: Sessions) -> list[tuple[Any, ...]]:
    columns = [
        *(part.to_pylist() for part in (*sessions.keys, *sessions.parts)),
        sessions.starts.tolist(),
        sessions.ends.tolist(),
    ]
    return sorted(zip(*columns, strict=True), key=repr)


@given(ROWS, st.integers(0, 50), st.booleans())
def test_merged_sessions_of_parts_are_the_sessions_of_all_rows(rows: list[Any], cut: int, singly: bool) -> None:
    schema = create_session_schema(SCHEMA, (0,), CALLS)
    pieces = []
    for part in (rows[:cut], rows[cut:]):
        if part:
            partials = PARTS.pass_rows(array(part)) if singly else PARTS.chunk(array(part)).columns
            pieces.append(combine_columns(list(partials), None, schema, len(partials[0])))
    assert as_rows(PARTS.merge_sessions(pa.concat_arrays(pieces))) == as_rows(PARTS.assign_sessions(array(rows)))


def test_a_session_can_be_within_another() -> None:
    rows = [("a", 0, 1), ("a", 4, 1), ("a", 8, 1), ("a", 2, 5), ("a", 14, 1)]
    sessions = PARTS.merge_sessions(
        pa.concat_arrays(
            combine_columns(
                list(PARTS.chunk(array(part)).columns), None, create_session_schema(SCHEMA, (0,), CALLS), count
            )
            for part, count in ((rows[:3], 1), (rows[3:4], 1), (rows[4:], 1))
        )
    )
    assert as_rows(sessions) == [("a", 1, 1, 1, 1, 14, 19), ("a", 4, 5, 8, 4, 0, 13)]
