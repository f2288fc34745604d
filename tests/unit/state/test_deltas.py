"""State files are read with the values that were written."""

from __future__ import annotations

import pytest

from millstream.state import deltas
from millstream.state.deltas import Changes, TableSchema
from millstream.types.factory import Types
from millstream.windows.window import CountWindow, GlobalWindow, TimeWindow

SCHEMA = TableSchema("totals", Types.STRING(), Types.LONG())


@pytest.mark.parametrize(
    "namespaces",
    [
        [None, None],
        [TimeWindow(-5, 10), TimeWindow(0, (1 << 63) - 1)],
        [TimeWindow(0, 1 << 70), TimeWindow(0, 1)],
        [TimeWindow(0, 1), None],
        [CountWindow(3), GlobalWindow.get()],
        ["pattern", 7],
    ],
)
def test_namespaces_survive_a_round_trip(namespaces):
    written = Changes(namespaces, ["a", "b"], [False, True], [1, None])
    ((name, _, read),) = deltas.decode(deltas.encode([(SCHEMA, written)]), {"totals": SCHEMA})
    assert (name, read) == ("totals", written)
    assert list(map(type, read.namespaces)) == list(map(type, namespaces))
