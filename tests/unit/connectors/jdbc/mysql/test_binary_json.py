"""MySQL's binary JSON becomes the text of the document."""

import struct

import pytest

from millstream.connectors.jdbc.mysql.binary_json import DamagedJson, decode_json


def text(value: str) -> bytes:
    return bytes([len(value)]) + value.encode()


def test_an_array_has_small_values_inline_and_others_after_it():
    # four values: int16 -2, true, "ab", double 0.5; the entries have 3 bytes each
    head = struct.pack("<HH", 4, 27)
    entries = b"\x05" + struct.pack("<h", -2) + b"\x04\x01\x00" + b"\x0c" + struct.pack("<H", 16)
    entries += b"\x0b" + struct.pack("<H", 19)
    assert decode_json(b"\x02" + head + entries + text("ab") + struct.pack("<d", 0.5)) == '[-2,true,"ab",0.5]'


def test_an_object_has_its_keys_before_its_values():
    # one member: {"k": [null]}; the nested array counts its offsets from its own begin
    nested = struct.pack("<HH", 1, 7) + b"\x04\x00\x00"
    head = struct.pack("<HH", 1, 12 + len(nested)) + struct.pack("<HH", 11, 1) + b"\x02" + struct.pack("<H", 12)
    assert decode_json(b"\x00" + head + b"k" + nested) == '{"k":[null]}'


def test_values_of_sql_inside_a_document():
    decimal = bytes([3, 1, 0x80 | 12, 5])  # 12.5
    assert decode_json(b"\x0f\xf6" + bytes([len(decimal)]) + decimal) == "12.5"
    packed = ((2024 * 13 + 2) << 5 | 29) << 41 | (3 << 12 | 4 << 6 | 5) << 24 | 6
    assert decode_json(b"\x0f\x0c\x08" + struct.pack("<q", packed)) == '"2024-02-29 03:04:05.000006"'
    assert decode_json(b"\x0f\x0a\x08" + struct.pack("<q", packed)) == '"2024-02-29"'


def test_a_damaged_document_is_an_error():
    for data in (b"\x02\x01", b"\x63", b"\x0c\x02\xff\xff"):
        with pytest.raises(DamagedJson, match="cannot be read"):
            decode_json(data)
    assert decode_json(b"") == "null"
