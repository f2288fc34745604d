"""Events of a binary log as MySQL writes them: rows of version 2, checksums, GTIDs, and what is refused."""

from __future__ import annotations

import pytest

from millstream.connectors.jdbc.mysql.binlog import LogDecoder, NotReadable, PositionGone, file_of, position_of

ROTATE, FORMAT, TABLE_MAP, GTID, WRITE, UPDATE, PAYLOAD = 4, 15, 19, 33, 30, 31, 40
UUID = bytes.fromhex("3e11fa4771ca11e19e33c80aa9429562")
START = position_of("binlog.000007", 4)
ITEMS = (9).to_bytes(6, "little") + b"\0\0" + b"\4shop\0" + b"\5items\0" + b"\2\3\x0f" + b"\2\x14\0" + b"\2"


def events(*parts: tuple[int, bytes], checksum: bytes = b"", stop: int | None = None) -> LogDecoder:
    """Return a decoder, with what it decoded in `seen`."""
    offset, packets = 4, list[bytes]()
    for event_type, body in [(FORMAT, b"\1" if checksum else b"\0"), *parts]:
        body += checksum or (b"\0\0\0\0" if event_type == FORMAT else b"")
        size = 19 + len(body)
        offset += 0 if event_type == FORMAT else size
        end = 0 if event_type == FORMAT else offset
        header = (1000).to_bytes(4, "little") + bytes([event_type]) + (1).to_bytes(4, "little")
        packets.append(header + size.to_bytes(4, "little") + end.to_bytes(4, "little") + b"\0\0" + body)
    decoder = LogDecoder(START)
    decoder.seen = list(decoder.events(packets, stop or START + offset))  # type: ignore[attr-defined]
    return decoder


def rows(*images: bytes, bitmaps: bytes = b"\xff") -> bytes:
    # version 2: after the flags a length of two bytes that counts itself
    return (9).to_bytes(6, "little") + b"\0\0" + b"\2\0" + b"\2" + bitmaps + b"".join(images)


ONE = b"\0" + (1).to_bytes(4, "little") + b"\1a"
NO_NAME = b"\2" + (1).to_bytes(4, "little")


@pytest.mark.parametrize("checksum", [b"", b"\xab\xcd\xef\x01"])
def test_rows_of_version_2_with_and_without_checksums(checksum):
    decoder = events(
        (TABLE_MAP, ITEMS), (WRITE, rows(ONE)), (UPDATE, rows(ONE, NO_NAME, bitmaps=b"\xff\xff")), checksum=checksum
    )
    insert, update = decoder.seen
    assert (insert.op, insert.old, insert.new, insert.at) == ("I", None, [1, b"a"], 1_000_000)
    assert (update.op, update.old, update.new) == ("U", [1, b"a"], [1, None])
    assert (update.table.schema, update.table.table) == ("shop", "items")
    assert decoder.position == update.end > insert.end


def test_a_transaction_begins_with_its_gtid():
    (begin,) = events((GTID, b"\1" + UUID + (42).to_bytes(8, "little") + b"\2")).seen
    assert begin.gtid == ("3e11fa47-71ca-11e1-9e33-c80aa9429562", 42)


def test_a_rotation_leads_to_the_next_file():
    decoder = events((ROTATE, (4).to_bytes(8, "little") + b"binlog.000008"), stop=position_of("binlog.000008", 4))
    assert decoder.position == position_of("binlog.000008", 4)
    assert file_of(decoder.position, "binlog") == "binlog.000008"


def test_events_that_would_lose_changes_are_refused():
    with pytest.raises(NotReadable, match="binlog_transaction_compression"):
        events((PAYLOAD, b""))
    with pytest.raises(NotReadable, match="does not have all columns"):
        events((TABLE_MAP, ITEMS), (WRITE, rows(ONE, bitmaps=b"\1")))
    with pytest.raises(PositionGone, match="without the description of their table"):
        events((WRITE, rows(ONE)))
