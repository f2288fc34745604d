"""Sets of GTIDs in both notations."""

import pytest

from millstream.connectors.jdbc.mysql.binlog import Event
from millstream.connectors.jdbc.mysql.gtid import parse_gtids
from millstream.connectors.jdbc.options import InvalidJdbcOption

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def event(source: str, number: int) -> Event:
    return Event("G", 0, 0, 0, gtid=(source, number))


def test_a_set_has_its_intervals():
    mysql = parse_gtids(f"{UUID.upper()}:1-5:7,\n 4e11fa47-71ca-11e1-9e33-c80aa9429562:1")
    assert [number for number in range(1, 10) if mysql.contains(event(UUID, number))] == [1, 2, 3, 4, 5, 7]
    mariadb = parse_gtids("0-1-42,3-1-7")
    assert mariadb.contains(event("0", 42))
    assert not mariadb.contains(event("0", 43))
    assert not mariadb.contains(event("1", 1))


@pytest.mark.parametrize("text", ["0-1", "x", f"{UUID}:"])
def test_another_text_is_refused(text):
    with pytest.raises(InvalidJdbcOption, match="is not a GTID set"):
        parse_gtids(text)
