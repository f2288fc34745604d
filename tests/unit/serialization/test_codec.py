"""Laws of the codec: decoded values equal the encoded ones, and decoding has no side effects."""

from __future__ import annotations

import collections
import contextvars
import copyreg
import datetime as dt
import enum
import io
import os
import pickle
import random
import resource
import struct
import subprocess
import sys
import threading
import typing
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.serialization import codec
from millstream.serialization.codec import (
    CorruptData,
    NotDeclarable,
    NotEncodable,
    UndeclaredClass,
    UnsafeData,
    declare,
    declared,
    decode,
    decode_many,
    encode,
    encode_many,
)
from millstream.types.row import Row, RowKind
from millstream.windows.window import CountWindow, GlobalWindow, TimeWindow


class Color(enum.Enum):
    RED = "r"
    BLUE = "b"


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Item:
    name: str
    color: Color


@dataclass
class Order:
    number: int
    items: list[Item] = field(default_factory=list)
    at: Point | None = None
    notes: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: str


@dataclass(frozen=True)
class Key:
    a: int


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a: int) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and other.a == self.a


class Names(list):  # type: ignore[type-arg]
    pass


class Celsius(float):
    pass


class Wrong(ValueError):
    pass


class Custom:
    """Restores through `__setstate__`."""

    def __init__(self, a: int) -> None:
        self.a = a

    def __getstate__(self) -> object:
        return (self.a,)

    def __setstate__(self, state: tuple[int]) -> None:
        (self.a,) = state


class Undeclared:
    touched = False

    def __new__(cls, *_: object) -> Undeclared:
        cls.touched = True
        return super().__new__(cls)

    def __setstate__(self, state: object) -> None:
        type(self).touched = True


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner) | st.frozensets(st.integers())
    ),
    max_leaves=12,
)

VALUES = [
    {1, 2},
    bytearray(b"ab"),
    1 + 2j,
    range(1, 9, 2),
    slice(1, None),
    dt.date(2024, 2, 29),
    dt.time(1, 2, 3, 4),
    dt.timedelta(days=-1, microseconds=7),
    dt.datetime(2024, 1, 1, 12),  # noqa: DTZ001
    dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Madrid")),
    ZoneInfo("UTC"),
    Decimal("1.50"),
    Fraction(1, 3),
    uuid.UUID(int=2**127 + 5),
    collections.OrderedDict(b=1, a=2),
    collections.Counter("hello"),
    collections.deque([1, 2, 3], maxlen=3),
    collections.deque(),
    collections.defaultdict(list, a=[1]),
    collections.defaultdict(None, a=1),
    np.float32(1.5),
    np.int64(-3),
    np.bool_(True),
    np.str_(""),
    np.bytes_(b"ab"),
    np.datetime64("2024-01-01T00:00:00.000000001"),
]


@pytest.fixture(autouse=True)
def _declared_classes() -> Iterator[None]:
    with codec.using(codec.Classes((Order, Frozen, Key, Slotted, Names, Celsius, Wrong, Custom, Rights))):
        Undeclared.touched = False
        yield


# ------------------------------------------------------------------------------------------------- what comes back


@given(PLAIN)
@settings(deadline=None, max_examples=60)
def test_plain_values_keep_value_and_type(value: object) -> None:
    back = decode(encode(value))
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value) or isinstance(value, (frozenset, list, tuple, dict))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_standard_values_keep_value_and_type(value: object) -> None:
    back = decode(encode(value))
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


@pytest.mark.parametrize(
    "value",
    [
        Order(7, [Item("x", Color.RED)], Point(1, 2), {"k": {Key(1): Decimal(2)}}),
        Frozen(1, "b"),
        Slotted(3),
        Names(["a", "b"]),
        Celsius(3.5),
        Rights.READ | Rights.WRITE,
        Color.BLUE,
        {Point(1, 2): Key(4)},
        collections.defaultdict(Order, {"a": Order(1)}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_instances_of_declared_classes_keep_value_and_class(value: object) -> None:
    back = decode(encode(value))
    assert back == value
    assert type(back) is type(value)


def test_classes_with_pickle_methods_are_restored_by_them() -> None:
    assert decode(encode(Custom(4))).a == 4
    error = decode(encode(Wrong("bad", 3)))
    assert type(error) is Wrong
    assert error.args == ("bad", 3)


def test_rows_and_windows_need_no_declaration() -> None:
    row = Row.of_kind(RowKind.DELETE, name="ann", at=TimeWindow(1, 5))
    for value in (row, Row(1, None), RowKind.UPDATE_AFTER, TimeWindow(0, 9), CountWindow(3), GlobalWindow()):
        back = decode(encode([value]))
        assert back == [value]
        assert repr(back) == repr([value])


def test_default_factories_survive_a_round_trip() -> None:
    assert decode(encode(collections.defaultdict(int)))["new"] == 0
    assert decode(encode(collections.defaultdict(collections.deque)))["new"] == collections.deque()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3).T,
        np.array([True, False]),
        np.array(["a", "bcd"]),
        np.array([], dtype="datetime64[ms]"),
        np.array(1.5),
        np.array([[1, 2], None, (3,)], dtype=object),
        np.array([[[1], [2]]], dtype=object),
    ],
    ids=lambda array: str(array.dtype),
)
def test_arrays_survive_a_round_trip_and_are_writable(array: np.ndarray[Any, Any]) -> None:
    back = decode(encode(array))
    np.testing.assert_array_equal(back, array)
    assert (back.dtype, back.shape, back.flags.writeable) == (array.dtype, array.shape, True)


def test_sharing_and_cycles_survive() -> None:
    order = Order(1)
    order.notes["self"] = order
    loop: list[object] = [order, order]
    loop.append(loop)
    back = decode(encode(loop))
    assert back[0] is back[1]
    assert back[2] is back
    assert back[0].notes["self"] is back[0]


def test_large_values_survive_a_round_trip() -> None:
    value = [b"x" * 200_000, "y" * 200_000, {"z": bytearray(200_000)}]
    assert decode(encode(value)) == value


def test_many_values_are_encoded_like_single_ones() -> None:
    values = [1, ("a", "a"), Order(1), [Point(1, 2)] * 2, Order(1)]
    assert encode_many(values) == [encode(value) for value in values]
    assert decode_many(encode_many(values)) == values


def test_views_of_bytes_are_read() -> None:
    data = encode({"a": Order(1)})
    assert decode(memoryview(data)) == decode(bytearray(data)) == {"a": Order(1)}


def test_a_failed_encoding_leaves_nothing_behind_for_the_next() -> None:
    with pytest.raises(UndeclaredClass):
        encode(["spoilt", Undeclared()])
    assert decode(encode(["spoilt"])) == ["spoilt"]


def test_nested_and_concurrent_encodings_do_not_interfere() -> None:
    class Nested:
        def __reduce__(self) -> tuple[Any, ...]:
            return Nested, (), {"inner": encode(["inner"])}

    declare(Nested)
    results: list[object] = []

    def work() -> None:
        results.extend(decode(decode(encode(["outer", Nested()]))[1].inner) for _ in range(200))

    threads = [threading.Thread(target=contextvars.copy_context().run, args=(work,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [["inner"]] * 800


# ----------------------------------------------------------------------------------------------------- declaring


def test_an_undeclared_class_is_refused_when_encoding_with_its_name() -> None:
    for value in (Undeclared(), [Undeclared()], {"a": (Undeclared(),)}, Order(1, notes={"x": Undeclared()})):
        with pytest.raises(UndeclaredClass, match=r"Undeclared cannot be stored.*register_type\(Undeclared\)"):
            encode(value)


@pytest.mark.parametrize(
    "value",
    [lambda: 1, (n for n in ()), threading.Lock(), sys, len, collections.defaultdict(lambda: 1), Order, os.stat("/")],
    ids=lambda value: type(value).__name__,
)
def test_objects_that_are_not_values_are_refused_when_encoding(value: object) -> None:
    with pytest.raises((UndeclaredClass, NotEncodable)):
        encode([value])


def test_a_value_too_deep_is_a_user_error() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NotEncodable):
        encode(deep)


def test_a_class_that_reduces_itself_to_a_function_is_refused_when_encoding() -> None:
    class Sly:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, ("true",)

    declare(Sly)
    with pytest.raises(NotEncodable, match="__reduce__"):
        encode(Sly())


def test_declaring_a_class_declares_the_classes_of_its_fields() -> None:
    assert {Order, Item, Color, Point} <= declared()


def test_annotations_declare_no_class_of_the_standard_library() -> None:
    @dataclass
    class Job:
        process: subprocess.Popen[bytes]
        path: typing.Optional[Path] = None  # noqa: UP045

    declare(Job)
    assert not {subprocess.Popen, Path} & declared()


@pytest.mark.parametrize("thing", [type, enum.EnumMeta, len, "Order", list[int]], ids=repr)
def test_only_classes_of_values_can_be_declared(thing: Any) -> None:
    with pytest.raises(NotDeclarable):
        declare(thing)


def test_classes_of_the_driver_are_matched_by_name_not_by_import() -> None:
    program = {"__name__": "__main__"}
    exec("class Event:\n    def __init__(self, n): self.n = n", program)
    original: Any = program["Event"]
    declare(original)
    data = encode(original(1))
    exec("class Event:\n    def __init__(self, n): self.n = n", program)  # the same class in another place
    again: Any = program["Event"]
    declare(again)
    assert type(decode(data)) is again
    assert type(decode(encode(original(2)))) is again


def test_bytes_are_read_in_another_process_that_declares_the_class() -> None:
    script = (
        "import sys, cloudpickle; from millstream.serialization.codec import *\n"
        "classes, data = cloudpickle.load(sys.stdin.buffer); declare(*classes)\n"
        "back = decode(data); assert type(back) is classes[0], back; sys.stdout.buffer.write(encode(back))"
    )

    class Event:
        def __init__(self, n: int) -> None:
            self.n = n

    Event.__module__ = "__main__"
    declare(Event)
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=cloudpickle.dumps(((Event,), encode(Event(5)))),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert decode(done.stdout).n == 5


def test_nested_classes_of_one_name_are_distinguished() -> None:
    class Left:
        class Meta:
            side = "left"

    class Right:
        class Meta:
            side = "right"

    declare(Left.Meta, Right.Meta)
    assert [decode(encode(cls.Meta())).side for cls in (Left, Right)] == ["left", "right"]


# ------------------------------------------------------------------------------------------------- hostile bytes

HARMFUL = ("os.", "subprocess.", "exec", "compile", "open", "import", "socket.", "pickle.find_class", "shutil.")
_watching: list[list[str]] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _watching and event.startswith(HARMFUL):
        _watching[-1].append(f"{event}{arguments!r:.200}")


sys.addaudithook(_audit)


def hostile_decode(data: bytes) -> object:
    """Decode bytes; checks that decoding had no side effects and raised declared errors only."""
    seen: list[str] = []
    _watching.append(seen)
    try:
        return decode(data)
    except (UnsafeData, CorruptData) as error:
        return error
    finally:
        _watching.pop()
        assert seen == []


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode()


def global_(module: str, name: str) -> bytes:
    return text(module) + text(name) + b"\x93"


BUILD = global_("millstream.model.codec", "build")
UNDECLARED = (__name__, "Undeclared")

NASTY = {
    "os.system": b"cos\nsystem\n(S'true'\ntR.",
    "os.system by stack": b"\x80\x05" + global_("os", "system") + text("true") + b"\x85R.",
    "posix.system": b"\x80\x05" + global_("posix", "system") + text("true") + b"\x85R.",
    "eval": b"\x80\x05" + global_("builtins", "eval") + text("1") + b"\x85R.",
    "python 2 name": b"\x80\x02c__builtin__\neval\n(S'1'\ntR.",
    "getattr": b"\x80\x05" + global_("builtins", "getattr") + BUILD + text("__class__") + b"\x86R.",
    "dotted attribute": b"\x80\x05" + global_("millstream.model.codec", "build.__class__") + b".",
    "dotted module": b"\x80\x05" + global_("millstream.model", "codec.pickle.loads") + b".",
    "other name of ours": b"\x80\x05" + global_("millstream.model.codec", "importlib") + b".",
    "reconstructor": b"\x80\x05" + global_("copyreg", "_reconstructor") + global_(*UNDECLARED) + b"N\x86R.",
    "newobj": b"\x80\x05" + global_(*UNDECLARED) + b")\x81.",
    "newobj_ex": b"\x80\x05" + global_(*UNDECLARED) + b")}\x92.",
    "inst": b"(S'true'\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nS'true'\no.",
    "partial": b"\x80\x05" + global_("functools", "partial") + b".",
    "type": b"\x80\x05" + global_("builtins", "type") + b".",
    "persistent id": b"Pos.system\n.",
    "binary persistent id": b"\x80\x05" + text("osc") + b"Q.",
    "undeclared by name": b"\x80\x05" + BUILD + text("new") + text(":".join(UNDECLARED)) + b"\x86R.",
    "class in a declared one's module": b"\x80\x05" + BUILD + text("new") + text("os:system") + b"\x86R.",
    "declared without own reduce called": b"\x80\x05" + BUILD + text("call") + text(f"{__name__}:Order") + b"\x86R.",
    "factory": b"\x80\x05" + BUILD + text("defaultdict") + text("os:getcwd") + b"\x86R.",
    "extension 1": b"\x80\x05\x82\x01.",
    "extension 2": b"\x80\x05\x83\x01\x01.",
    "extension 4": b"\x80\x05\x84\x01\x00\x00\x00.",
}

DAMAGED = {
    "empty": b"",
    "no stop": b"\x80\x05K\x01",
    "underflow": b"\x80\x05.",
    "pop of nothing": b"0.",
    "unknown opcode": b"\x80\x05\xff.",
    "future protocol": b"\x80\x63K\x01.",
    "memo never written": b"\x80\x05h\x07.",
    "frame longer than data": b"\x80\x05\x95" + struct.pack("<Q", 2**63 - 1) + b"K\x01.",
    "text longer than data": b"\x80\x05\x8d" + struct.pack("<Q", 2**62) + b"a.",
    "bytearray bomb": b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"a.",
    "bad utf-8": b"\x80\x05\x8c\x02\xff\xfe.",
    "unhashable key": b"\x80\x05}](K\x01u.",
    "stack_global of numbers": b"\x80\x05K\x01K\x02\x93.",
    "call of text": b"\x80\x05" + text("abc") + b")R.",
    "unknown kind": b"\x80\x05" + BUILD + text("exec") + b"\x85R.",
    "kind is no text": b"\x80\x05" + BUILD + b"]\x85R.",
    "attributes for build": b"\x80\x05" + BUILD + b"N}" + text("x") + b"K\x01s\x86b.",
    "dict for build": b"\x80\x05" + BUILD + b"}" + text("x") + b"K\x01sb.",
    "attributes for a type": b"\x80\x05" + global_("datetime", "date") + b"N}" + text("x") + b"K\x01s\x86b.",
    "counter of no dict": b"\x80\x05" + BUILD + text("counter") + global_("builtins", "range") + b"K\x09\x85R\x86R.",
    "fraction bomb": b"\x80\x05" + BUILD + text("fraction") + text("1e999999999") + b"K\x01\x87R.",
    "object dtype": b"\x80\x05" + BUILD + b"(" + text("array") + text("|O") + b"K\x01\x85C\x08" + b"\0" * 8 + b"tR.",
    "array bomb": b"\x80\x05" + BUILD + b"(" + text("array") + text("<i8") + b"J\xff\xff\xff\x7f\x85C\x00tR.",
    "buffer from elsewhere": b"\x80\x05\x97.",
}


@pytest.mark.parametrize("data", NASTY.values(), ids=NASTY)
def test_hostile_bytes_are_refused_and_do_nothing(data: bytes) -> None:
    answer = hostile_decode(data)
    assert isinstance(answer, (UnsafeData, CorruptData))
    assert isinstance(answer, UnsafeData) or data[2:3] in b"\x82\x83\x84" or data[:1] == b"P"
    assert not Undeclared.touched


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damaged_bytes_are_corrupt_data(data: bytes) -> None:
    assert isinstance(hostile_decode(data), CorruptData)


def test_the_plain_pickle_of_a_declared_class_is_refused() -> None:
    assert isinstance(hostile_decode(pickle.dumps(Order(1))), UnsafeData)


def test_no_bytes_can_change_a_declared_class() -> None:
    name = text(f"{__name__}:Custom")
    instance = b"\x80\x05" + BUILD + text("new") + name + b"\x86R"
    hostile_decode(instance + b"N}" + text("__class__") + global_("builtins", "range") + b"s\x86b.")
    before = dict(vars(Custom))
    for reach in (global_(__name__, "Custom"), BUILD + text("class") + name + b"\x86R"):
        assert isinstance(hostile_decode(b"\x80\x05" + reach + b"N}" + text("a") + b"K\x01s\x86b."), Exception)
    assert dict(vars(Custom)) == before


def test_a_registered_and_cached_extension_is_refused() -> None:
    copyreg.add_extension("os", "getcwd", 77)
    try:
        extension = b"\x80\x05\x82" + bytes([77])
        assert pickle.loads(extension + b".") is os.getcwd  # now in pickle's own cache
        for data in (extension + b")R.", extension + b".", b"\x80\x05\x83M\x00.", b"\x80\x05\x84M\0\0\0."):
            assert isinstance(hostile_decode(data), UnsafeData)
        assert decode(encode(["fine", Order(1)])) == ["fine", Order(1)]
    finally:
        copyreg.remove_extension("os", "getcwd", 77)
        copyreg.clear_extension_cache()


SAMPLES = [
    encode(value)
    for value in [*VALUES, ("a", 1, 2.5), {"k": [1, {2}]}, "iconic", [["c"], b"i"]]
    if "zoneinfo" not in repr(value)  # a changed zone is looked up in the system's files
]


def test_every_prefix_of_real_bytes_is_corrupt() -> None:
    for data in SAMPLES:
        for end in range(len(data)):
            assert isinstance(hostile_decode(data[:end]), CorruptData)


@pytest.fixture
def _little_memory() -> Iterator[None]:
    """Limit memory: a memo index may make pickle allocate gigabytes, which must be refused."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="changed bytes may ask pickle for gigabytes, which only Linux refuses a process by RLIMIT_AS",
)
@pytest.mark.usefixtures("_little_memory")
def test_changed_bytes_execute_nothing_and_raise_only_codec_errors() -> None:
    assert isinstance(hostile_decode(b"\x80\x05K\x01r\xff\xff\xff\x7f."), CorruptData)
    chance = random.Random(4711)
    for _ in range(4000):
        data = bytearray(chance.choice(SAMPLES))
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.choice(b"ciRbo\x81\x93\x82\x92uea0.tP") ^ chance.choice(
                (0, 0, 1)
            )
        hostile_decode(bytes(data))


@given(st.binary(max_size=40))
@settings(deadline=None, max_examples=100)
def test_random_bytes_execute_nothing_and_raise_only_codec_errors(data: bytes) -> None:
    if b"r" not in data and b"\x96" not in data and b"p" not in data:
        hostile_decode(b"\x80\x05" + data)


def test_the_standard_unpickler_never_loads_a_global() -> None:
    for protocol in range(6):
        file = io.BytesIO()
        pickle.Pickler(file, protocol).dump(os.getcwd)
        assert isinstance(hostile_decode(file.getvalue()), UnsafeData)
