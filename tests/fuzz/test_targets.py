"""Parsers of what comes from storage and the network raise declared errors only: seeds, mutations of seeds, and what
longer runs (`make fuzz`) have found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from targets import TARGETS, Target

_SCHEMA = b'{"type":"record","name":"R","fields":[]}'
_MANY_EMPTY_RECORDS = b"Obj\1\2\x16avro.schemaP" + _SCHEMA + b"\0" + b"s" * 16 + b"\x80\x80\x80\x10\0" + b"s" * 16
#: Inputs that once raised other errors than declared ones.
FOUND: dict[str, list[bytes]] = {
    "block": [b"", b"\x09" + bytes(15), b"\x03" + bytes(20), b"\x05" + bytes(15) + b"[" * 100_000, b"\x01" + bytes(15)],
    "pgoutput": [b"\1I", b"\x15B" + bytes(20) + b"\x01I", b"\x15B" + bytes(20) + b"\x06I\0\0\0\7N", b"\3R\0\0", b"\0"],
    "avro_file": [b"Obj\1\4\x14avro.codec\x08n\x8d\x8d\x8d\x8d\x8d\xff\xff\xff\xff\xff\xff\xff7u", _MANY_EMPTY_RECORDS],
    "lease": [b"", b"{", b"[]", b"null", b"[" * 100_000],
    "state_file": [b"MSD1\x08\0\0\0[888]  ", b'MSD1\x18\0\0\0[{"name":{},"length":1}]'],
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_seeds_are_read(target: Target) -> None:
    assert target.seeds
    for seed in target.seeds:
        target.run(seed)


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, found in FOUND.items() for data in found])
def test_what_was_found_stays_mended(name: str, data: bytes) -> None:
    TARGETS[name].run(data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_changed_seeds_give_declared_errors_only(target: Target) -> None:
    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        made = bytearray(data.draw(st.sampled_from(target.seeds)))
        for _ in range(data.draw(st.integers(1, 5))):
            at = data.draw(st.integers(0, len(made)))
            gone = data.draw(st.integers(0, 3) | st.integers(0, len(made)))
            new = st.binary(max_size=4) if not target.words else st.binary(max_size=4) | st.sampled_from(target.words)
            made[at : at + gone] = data.draw(new)
        target.run(bytes(made))

    check()
