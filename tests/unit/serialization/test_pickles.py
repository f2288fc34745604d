"""Hostile pickles: unbounded growth is refused before it happens."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.serialization import codec
from millstream.serialization.codec import CorruptData, UnsafeData
from millstream.serialization.pickles import MAX_DEPTH, BadPickle, check_depth, inspect

MANY = 1 << 21  # elements or bytes: far more than a test has
SOME = 1 << 18


class Names(tuple):
    """A subclass of tuple."""


class Raw(bytes):
    """A subclass of bytes."""


class Tags(set):
    """A subclass of set."""


class Queue(deque):
    """A subclass of deque."""


class Words(Counter):
    """A subclass of Counter."""


class Plain:
    """An object without attributes."""


class Matrix(np.ndarray):
    """A subclass of a NumPy array."""


def _build(*arguments: Any) -> bytes:
    """A pickle that calls a global of the codec."""
    made = b"".join(pickle.dumps(each, 5)[2:-1] if type(each) is not range else _RANGE for each in arguments)
    return b"\x80\x05cmillstream.model.codec\nbuild\n(" + made + b"tR."


def _repeated_calls(times: int, *arguments: Any) -> bytes:
    """A pickle with many calls that take the same arguments from the memo."""
    made = b"".join(pickle.dumps(each, 3)[2:-1] for each in arguments)
    return b"\x80\x05cmillstream.model.codec\nbuild\nq\xfa0(" + made + b"tq\xfb0(" + b"h\xfah\xfbR" * times + b"l."


_RANGE = b"cbuiltins\nrange\nJ" + struct.pack("<i", MANY) + b"\x85R"
_NAME = f"{__name__}:"
HOSTILE = {
    "memo number": b"\x80\x05Nr" + struct.pack("<I", MANY) + b".",
    "memo number as text": b"\x80\x05Np%d\n." % MANY,
    "memo number of many digits": b"\x80\x05Np" + b"9" * 5000 + b"\n.",
    "memo number among globals": b"\x80\x05cbuiltins\nrange\nr" + struct.pack("<I", MANY) + b".",
    "memo number behind text": b"\x80\x05\x8c\x03abcX\x02\x00\x00\x00xyr" + struct.pack("<I", MANY) + b".",
    **{
        f"length of {name}": b"\x80\x05" + code + struct.pack("<Q", MANY)[:size] + b"ab."
        for name, code, size in [
            ("bytes", b"B", 4), ("long bytes", b"\x8e", 8), ("text", b"X", 4), ("long text", b"\x8d", 8),
            ("byte array", b"\x96", 8), ("number", b"\x8b", 4), ("old text", b"T", 4), ("frame", b"\x95", 8),
        ]
    },
    "a tuple of a range": _build("new", _NAME + "Names", range(MANY)),
    "zero bytes": _build("new", _NAME + "Raw", MANY),
    "a set of a range": _build("call", _NAME + "Tags", range(MANY)),
    "a deque of a range": _build("call", _NAME + "Queue", range(MANY)),
    "a counter of a range": _build("call", _NAME + "Words", range(MANY)),
    "an array of a size": _build("call", _NAME + "Matrix", MANY),
    "an array of nothings": _build("array", "|S0", (MANY,), b""),
    "empty sets": b"\x80\x05(" + b"\x8f" * SOME + b"l.",
    "few empty sets": b"\x80\x05(" + b"\x8f" * 60_000 + b"l.",
    "empty sets among globals": b"\x80\x05cbuiltins\nrange\n0(" + b"\x8f" * SOME + b"l.",
    "empty frozen sets": b"\x80\x05(" + b"(\x91" * SOME + b"l.",
    "empty lists": b"\x80\x05(" + b"]" * SOME + b"l.",
    "empty dicts": b"\x80\x05(" + b"}" * SOME + b"l.",
    "empty tuples": b"\x80\x05(" + b")\x85" * SOME + b"l.",
    "dicts of one": b"\x80\x05(" + b"}NNs" * (SOME >> 2) + b"l.",
    **{
        f"{name} again and again": _repeated_calls(times, *arguments)
        for name, times, *arguments in [
            ("deques", SOME >> 2, "deque", None),
            ("ordered dicts", SOME >> 2, "ordered"),
            ("counters", 300, "counter", dict.fromkeys(range(3000), 1)),
            ("arrays of objects", 300, "objects", (50_000,), [None] * 50_000),
            ("arrays", 300, "array", "|u1", (50_000,), b"x" * 50_000),
            ("tuples", 300, "new", _NAME + "Names", [None] * 50_000),
            ("sets", 300, "call", _NAME + "Tags", list(range(3000))),
        ]
    },
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_pickle_takes_little_memory(data: bytes) -> None:
    with codec.using(codec.Classes((Names, Raw, Tags, Queue, Words, Matrix))):
        tracemalloc.start()
        try:
            codec.decode(data)
        except (CorruptData, UnsafeData):
            pass
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert peak < 4_000_000 + 130 * len(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x05})" + b"\x85" * (4 * MAX_DEPTH) + b"Ns.",
        b"\x80\x05})\x94" + b"0h\x00\x85q\x00" * (MAX_DEPTH + 1) + b"Ns.",
    ],
    ids=["on the stack", "through the memo"],
)
def test_a_key_of_nested_tuples_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptData, match="nested more than"):  # hashing it would end the process
        codec.decode(data)


@pytest.mark.parametrize("count", [1, 10, 30_000])
def test_many_small_containers_survive_a_round_trip(count: int) -> None:
    """A pickler takes the fewest bytes for these."""
    made: list[Callable[[], Any]] = [set, frozenset, list, dict, tuple, deque, Counter, OrderedDict, Tags, Queue, Words]
    with codec.using(codec.Classes((Names, Raw, Tags, Queue, Words, Plain))):
        for make in (*made, Plain, lambda: {1}, lambda: frozenset((1,)), lambda: np.zeros(0), lambda: Fraction(1, 3)):
            value = [make() for _ in range(count if make not in (Tags, Queue, Words, Plain) else min(count, 3_000))]
            back = codec.decode(codec.encode(value))
            assert (len(back), type(back[-1])) == (len(value), type(value[-1]))
        shared = np.arange(10_000)
        assert len(codec.decode(codec.encode([shared, shared[:5], shared.copy()]))) == 3


def test_text_that_looks_like_many_sets_is_accepted() -> None:
    for value in (b"\x8f" * 100_000, [b"R\x8f\x91" * 80] * 3, ["R" * 250 + str(n) for n in range(500)], "R" * 70_000):
        assert codec.decode(codec.encode(value)) == value


def test_the_global_of_the_codec_cannot_be_changed() -> None:
    changing = b"\x80\x05cmillstream.model.codec\nbuild\nN}X\x05\x00\x00\x00_leftM\xff\xffs\x86b"
    with pytest.raises(CorruptData, match="_left"):
        codec.decode(changing + b"N0" * 300 + b".")


def test_containers_of_the_program_survive_a_round_trip() -> None:
    with codec.using(codec.Classes((Names, Raw, Tags, Queue, Words))):
        for value in (Names((1, range(9))), Raw(b"abc"), Tags({1}), Queue([1, 2], 5), Words("aab")):
            back = codec.decode(codec.encode(value))
            assert (type(back), back) == (type(value), value)


class Tagged(NamedTuple):
    number: int
    tags: tuple[str, ...]


class Described(dict):
    """Written with an argument that objects share."""

    def __init__(self, name: int, schema: list[str]) -> None:
        super().__init__(name=name)
        self.schema = schema

    def __reduce__(self):
        return Described, (self["name"], self.schema)


def test_objects_that_share_their_arguments_survive_a_round_trip() -> None:
    shared = [f"column {number}" for number in range(50)]
    tags = tuple(shared)
    with codec.using(codec.Classes((Tagged, Described))):
        tagged = [Tagged(number, tags) for number in range(2000)]
        assert codec.decode(codec.encode(tagged)) == tagged
        described = [Described(number, shared) for number in range(1500)]
        back = codec.decode(codec.encode(described))
    assert back == described
    assert back[0].schema is back[-1].schema


def test_text_and_bytes_that_look_like_opcodes_are_accepted() -> None:
    for value in ("r" * 50, "p99999999\n", b"\x8e" * 300, ("cposix\nsystem\n", "rzzzzz" * 100), "i" * 70_000):
        assert codec.decode(codec.encode(value)) == value
        assert not inspect(codec.encode(value))


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_is_read(protocol: int) -> None:
    value = [1, -5, 2**40, 2**5000, 1.5, "text", "ü" * 300, b"raw", (1, (2,)), {"k": [None, True]}, {3}]
    data = pickle.dumps(value, protocol)
    assert inspect(data) == (protocol < 4)  # before protocol 4 a set is a global
    check_depth(data)


@given(st.recursive(st.none() | st.integers() | st.text() | st.binary(), lambda x: st.lists(x) | st.tuples(x, x)))
@settings(deadline=None, max_examples=60)
def test_plain_values_load_no_globals(value: object) -> None:
    data = codec.encode(value)
    assert not inspect(data)
    check_depth(data)


def test_depth_is_counted_through_every_container() -> None:
    nested: Any = ()
    for _ in range(MAX_DEPTH + 1):
        nested = (nested,)
    flat = [()] * 10
    deep = b"\x80\x05)" + b"\x85" * (MAX_DEPTH + 1) + b"."
    with pytest.raises(BadPickle, match="nested more than"):
        inspect(deep)
    assert not inspect(b"\x80\x05)" + b"\x85" * MAX_DEPTH + b".")
    many = pickle.dumps([(i, (i,)) for i in range(MAX_DEPTH)], 5)
    assert codec.decode(many)[-1] == (MAX_DEPTH - 1, (MAX_DEPTH - 1,))
    assert flat == codec.decode(codec.encode(flat))


# ------------------------------------------------------------------------------------------------------------- frames


def _frame(content: bytes, length: int | None = None) -> bytes:
    return b"\x95" + struct.pack("<Q", len(content) if length is None else length) + content


_GLOBAL = b"cmillstream.model.codec\nbuild\n0"
# a memo of MANY entries, inside a text so that `inspect` does not see it
_HIDDEN = b"Nr" + struct.pack("<I", MANY) + b"."
OVERLAPPING = {
    # The unpickler drops the rest of the outer frame, and reads the text as opcodes.
    "a frame inside a frame": _GLOBAL + _frame(_frame(b"\x8c" + bytes([len(_HIDDEN)]), len(_HIDDEN))) + _HIDDEN + b".",
    "a frame beyond the end": _GLOBAL + _frame(b"N", 1 << 40) + b".",
    "a text across the end of a frame": _GLOBAL + _frame(b"\x8c\x02a") + b"b.",
    "a long text across the end of a frame": _GLOBAL + _frame(b"X\x02\x00\x00\x00a") + b"b.",
    "a line across the end of a frame": _GLOBAL + _frame(b"I1") + b"2\n.",
}


@pytest.mark.parametrize("data", OVERLAPPING.values(), ids=OVERLAPPING)
def test_frames_that_no_pickler_writes_are_refused(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadPickle):
            inspect(b"\x80\x05" + data)
        with pytest.raises(CorruptData):
            codec.decode(b"\x80\x05" + data)
        assert tracemalloc.get_traced_memory()[1] < MANY
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [1, 1 << 10, 1 << 16, 1 << 20])
def test_frames_of_a_pickler_are_read(size: int) -> None:
    value = [deque([b"x" * size]), deque(["y" * size]), deque(range(size % 70_000)), Fraction(1, 3)]
    assert codec.decode(codec.encode(value)) == value
