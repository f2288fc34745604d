# ruff: noqa: DTZ001 - datetimes without a zone are what is tested
"""The type system: values are equal after a conversion to Arrow and back, and errors name the value that does not
fit."""

from __future__ import annotations

import datetime
import functools
import json
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.times import Instant
from millstream.types.factory import InvalidTypeArgument, TypeInformation, TypeMismatch, Types, UnknownType
from millstream.types.row import Row, RowKind
from millstream.types.type_hints import find_return_type, find_type_of_hint

ZONE = datetime.timezone(datetime.timedelta(hours=2))


class Pair(NamedTuple):
    a: int
    b: str


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    items: list[str] | None = None


@dataclass
class Node:
    children: list[Node]


@dataclass
class Derived:
    side: int

    def __post_init__(self) -> None:
        self.area = self.side**2


LOCAL_DATETIME = find_type_of_hint(datetime.datetime)
LOCAL_TIME = find_type_of_hint(datetime.time)
LOCAL_DATE = find_type_of_hint(datetime.date)

EXACT: list[tuple[TypeInformation, list[Any]]] = [
    (Types.STRING(), ["a", "", "é😀"]),
    (Types.BYTE(), [-128, 127]),
    (Types.BOOLEAN(), [True, False]),
    (Types.SHORT(), [-(2**15), 2**15 - 1]),
    (Types.INT(), [-(2**31), 2**31 - 1]),
    (Types.LONG(), [-(2**63), 2**63 - 1]),
    (Types.FLOAT(), [1.5, float("inf")]),
    (Types.DOUBLE(), [0.1, -1e300]),
    (Types.CHAR(), ["a"]),
    (Types.BIG_INT(), [10**6000, -1, 0, 127, 128, -128, -129]),
    (Types.BIG_DEC(), [Decimal("1.10"), Decimal("1E+3")]),
    (Types.INSTANT(), [Instant(-(2**60), 999_999_999), Instant(1, 5)]),
    (Types.SQL_DATE(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    (Types.SQL_TIME(), [datetime.time(23, 59, 59, 999_000)]),
    (Types.SQL_TIMESTAMP(), [datetime.datetime(9999, 12, 31, 1, 2, 3, 4_000), datetime.datetime(1, 1, 1)]),
    (LOCAL_DATETIME, [datetime.datetime(2020, 1, 1, 1, 2, 3, 456_789)]),
    (LOCAL_TIME, [datetime.time(1, 2, 3, 456_789)]),
    (LOCAL_DATE, [datetime.date(2020, 1, 1)]),
    (Types.PICKLED_BYTE_ARRAY(), [{1, 2}, "a", 2**100]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"ab", b""]),
    (Types.PRIMITIVE_ARRAY(Types.INT()), [[1, 2], []]),
    (Types.BASIC_ARRAY(Types.STRING()), [["a", None], []]),
    (Types.OBJECT_ARRAY(Types.ROW([Types.INT()])), [[Row(f0=1), None], []]),
    (Types.LIST(Types.LIST(Types.STRING())), [[["a"], None, []], [["b", "c"], ["d"]]]),
    (Types.MAP(Types.STRING(), Types.LIST(Types.INT())), [{"a": [1]}, {}, {"b": None, "c": [2, 3]}]),
    (Types.TUPLE([Types.INT(), Types.TUPLE([Types.STRING()])]), [(1, ("a",)), (None, None)]),
    (Types.TUPLE([]), [(), ()]),
    (
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()]),
        [Row(a=1, b="x"), Row.of_kind(RowKind.DELETE, a=2, b="")],
    ),
    (Types.NAMED_TUPLE(Pair), [Pair(1, "a"), Pair(2, "b")]),
    (Types.DATACLASS(Order), [Order(1, ["a"]), Order(2)]),
]
IDS = [str(type_info) for type_info, _ in EXACT]


@pytest.mark.parametrize(("type_info", "values"), EXACT, ids=IDS)
def test_conform_returns_the_same_list_for_exact_values(type_info: TypeInformation, values: list[Any]) -> None:
    assert type_info.conform(values) is values


@pytest.mark.parametrize(("type_info", "values"), EXACT, ids=IDS)
def test_values_are_equal_after_a_conversion_to_arrow_and_back(type_info: TypeInformation, values: list[Any]) -> None:
    values = [None, *values, None]
    array = type_info.to_arrow(values)
    array.validate(full=True)
    assert array.type == type_info.arrow_type
    back = type_info.from_arrow(array)
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]


@pytest.mark.parametrize(("type_info", "values"), EXACT, ids=IDS)
def test_a_sliced_array_has_the_same_values(type_info: TypeInformation, values: list[Any]) -> None:
    values = [*values, None, *values]
    array = type_info.to_arrow(values)
    assert type_info.from_arrow(array.slice(1, len(values) - 2)) == values[1:-1]
    assert type_info.from_arrow(pa.chunked_array([array.slice(0, 1), array.slice(1)])) == values
    assert type_info.from_arrow(type_info.to_arrow([])) == []


@pytest.mark.parametrize(("type_info", "values"), EXACT, ids=IDS)
def test_a_type_can_be_written_as_json_and_pickled(type_info: TypeInformation, values: list[Any]) -> None:
    for copy in (
        TypeInformation.type_from_json(json.loads(json.dumps(type_info.to_json()))),
        pickle.loads(pickle.dumps(type_info)),
    ):
        assert copy == type_info
        assert hash(copy) == hash(type_info)
        assert repr(copy) == repr(type_info)
        assert copy.from_arrow(type_info.to_arrow(values)) == values


CONVERTED: list[tuple[TypeInformation, Any, Any]] = [
    (Types.INT(), True, 1),
    (Types.INT(), 1.9, 1),
    (Types.LONG(), np.int64(4), 4),
    (Types.DOUBLE(), 1, 1.0),
    (Types.DOUBLE(), 2**60 + 1, float(2**60 + 1)),
    (Types.FLOAT(), 1.1, 1.100000023841858),
    (Types.FLOAT(), 1e300, float("inf")),
    (Types.BOOLEAN(), 1, True),
    (Types.BIG_DEC(), 1.5, Decimal("1.5")),
    (Types.SQL_DATE(), datetime.datetime(2020, 1, 1, 5), datetime.date(2020, 1, 1)),
    (Types.SQL_TIME(), datetime.time(1, 2, 3, 456_789, tzinfo=ZONE), datetime.time(1, 2, 3, 456_000)),
    (
        Types.SQL_TIMESTAMP(),
        datetime.datetime(2020, 1, 1, 5, 0, 0, 1_999, tzinfo=ZONE),
        datetime.datetime(2020, 1, 1, 5, 0, 0, 1_000),
    ),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"x"), b"x"),
    (Types.LIST(Types.DOUBLE()), (1, 2), [1.0, 2.0]),
    (Types.MAP(Types.STRING(), Types.DOUBLE()), {"a": 1}, {"a": 1.0}),
    (Types.TUPLE([Types.INT(), Types.DOUBLE()]), [1, 2], (1, 2.0)),
    (Types.TUPLE([Types.LONG(), Types.STRING()]), Pair(1, "a"), (1, "a")),
    (Types.ROW([Types.INT(), Types.STRING()]), (1, "a"), Row(f0=1, f1="a")),
    (Types.ROW([Types.INT(), Types.STRING()]), Row(1, "a"), Row(f0=1, f1="a")),
    (Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]), {"b": 2}, Row(a=None, b=2)),
    (Types.ROW_NAMED(["number"], [Types.INT()]), Order(3), Row(number=3)),
    (
        Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.INT()]),
        Row.of_kind(RowKind.DELETE, b=1, a=2),
        Row.of_kind(RowKind.DELETE, a=2, b=1),
    ),
]


@pytest.mark.parametrize(("type_info", "value", "expected"), CONVERTED, ids=repr)
def test_a_conversion_is_the_same_with_and_without_an_exchange(
    type_info: TypeInformation, value: Any, expected: Any
) -> None:
    for got in (type_info.conform([None, value]), type_info.from_arrow(type_info.to_arrow([None, value]))):
        assert got == [None, expected]
        assert type(got[1]) is type(expected)


REFUSED: list[tuple[TypeInformation, list[Any], int, tuple[str, ...]]] = [
    (Types.STRING(), ["a", 1], 1, ()),
    (Types.STRING(), [b"x"], 0, ()),
    (Types.INT(), [1, None, 2**31], 2, ()),
    (Types.LONG(), ["1"], 0, ()),
    (Types.LONG(), [1, float("nan")], 1, ()),
    (Types.DOUBLE(), [None, "1"], 1, ()),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), ["a"], 0, ()),
    (Types.SQL_TIMESTAMP(), [datetime.date(2020, 1, 1)], 0, ()),
    (LOCAL_DATETIME, [datetime.datetime(2020, 1, 1, tzinfo=ZONE)], 0, ()),
    (LOCAL_DATE, [datetime.datetime(2020, 1, 1)], 0, ()),
    (Types.TUPLE([Types.INT(), Types.STRING()]), [None, (1, "a"), (1,)], 2, ()),
    (Types.TUPLE([Types.INT(), Types.STRING()]), [None, (1, "a"), (1, 2)], 2, ("f1",)),
    (Types.LIST(Types.LIST(Types.INT())), [[], None, [[1], ["x"]]], 2, ("element", "element")),
    (Types.MAP(Types.STRING(), Types.INT()), [{}, {"a": 1}, {None: 1}], 2, ("key",)),
    (Types.MAP(Types.STRING(), Types.INT()), [{}, {"a": "1"}], 1, ("value",)),
    (Types.ROW([Types.INT()]), [None, 5], 1, ()),
    (Types.ROW([Types.INT()]), [Row(z=1)], 0, ()),
    (Types.DATACLASS(Order), [None, Order(1), Pair(1, "a")], 2, ()),
]


@pytest.mark.parametrize(("type_info", "values", "index", "path"), REFUSED, ids=repr)
def test_a_mismatch_is_named_by_index_and_path(
    type_info: TypeInformation, values: list[Any], index: int, path: tuple[str, ...]
) -> None:
    for convert in (type_info.conform, type_info.to_arrow):
        with pytest.raises(TypeMismatch) as caught:
            convert(values)
        assert caught.value.index == index
        assert caught.value.path == path


@given(
    st.lists(
        st.none()
        | st.tuples(
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
        )
    )
)
def test_nested_none_values_are_kept(values: list[Any]) -> None:
    type_info = Types.TUPLE([Types.LONG(), Types.LIST(Types.STRING())])
    assert type_info.conform(values) is values
    assert type_info.from_arrow(type_info.to_arrow(values)) == values


def test_texts_are_those_of_pyflink() -> None:
    assert repr(Types.INT()) == "Integer"
    assert repr(Types.ROW([Types.INT()])) == "RowTypeInfo(Integer)"
    assert repr(Types.ROW_NAMED(["a"], [Types.CHAR()])) == "RowTypeInfo(a: Char)"
    assert repr(Types.TUPLE([Types.INT(), Types.SQL_TIME()])) == "TupleTypeInfo(Integer, TimeTypeInfo)"
    assert repr(Types.MAP(Types.INT(), Types.STRING())) == "MapTypeInfo<Integer, String>"
    assert repr(Types.PRIMITIVE_ARRAY(Types.BYTE())) == "PrimitiveArrayTypeInfo<Byte>"
    assert repr(Types.PICKLED_BYTE_ARRAY()) == "PickledByteArrayTypeInfo"


def test_row_types_are_equal_by_their_field_types_and_differ_in_schema_by_names() -> None:
    plain, named = Types.ROW([Types.INT()]), Types.ROW_NAMED(["a"], [Types.INT()])
    assert plain == named
    assert not plain.schema_equals(named)
    assert plain.get_field_names() == ["f0"]
    assert (plain.get_field_index("f0"), named.get_field_index("a")) == (-1, 0)


def test_a_type_is_columnar_unless_it_contains_python_objects() -> None:
    assert Types.DATACLASS(Order).is_columnar
    assert not Types.PICKLED_BYTE_ARRAY().is_columnar
    assert not Types.TUPLE([Types.INT(), Types.LIST(Types.PICKLED_BYTE_ARRAY())]).is_columnar


@pytest.mark.parametrize(
    "build",
    [
        lambda: Types.ROW([Types.STRING]),
        lambda: Types.ROW_NAMED(["a", "a"], [Types.INT(), Types.INT()]),
        lambda: Types.ROW_NAMED(["a"], []),
        lambda: Types.PRIMITIVE_ARRAY(Types.STRING()),
        lambda: Types.DATACLASS(int),
    ],
)
def test_a_type_of_other_arguments_is_refused(build: Any) -> None:
    with pytest.raises(InvalidTypeArgument):
        build()


def test_reading_a_description_imports_nothing_and_a_missing_class_is_read_as_rows() -> None:
    description = {**Types.DATACLASS(Order).to_json(), "class": "antigravity:Order"}
    lost = TypeInformation.type_from_json(description)
    assert "antigravity" not in sys.modules
    assert lost.from_arrow(Types.DATACLASS(Order).to_arrow([Order(1, ["a"])])) == [Row(number=1, items=["a"])]
    with pytest.raises(UnknownType):
        TypeInformation.type_from_json({"type": "NOPE"})


def test_a_dataclass_is_rebuilt_without_running_its_constructor() -> None:
    type_info = Types.DATACLASS(Derived)
    assert type_info.from_arrow(type_info.to_arrow([Derived(3)])) == [Derived(3)]


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, Types.LONG()),
        (float, Types.DOUBLE()),
        (bytes, Types.PRIMITIVE_ARRAY(Types.BYTE())),
        (tuple[int, str], Types.TUPLE([Types.LONG(), Types.STRING()])),
        (list[dict[str, bool]], Types.LIST(Types.MAP(Types.STRING(), Types.BOOLEAN()))),
        (Decimal | None, Types.BIG_DEC()),
        (int | None, Types.LONG()),
        (Pair, Types.NAMED_TUPLE(Pair)),
        (Order, Types.DATACLASS(Order)),
        (int | str, None),
        (tuple[int, ...], None),
        (tuple[int, object], None),
        (list, None),
        (Any, None),
        (Node, None),
        (Derived, None),
    ],
    ids=repr,
)
def test_a_hint_has_a_type_only_if_the_type_holds_every_value(hint: Any, expected: TypeInformation | None) -> None:
    assert find_type_of_hint(hint) == expected


def test_return_types_are_read_from_any_callable_and_never_raise() -> None:
    class Callable:
        def map(self, value: Nope) -> list[Order]: ...  # type: ignore[name-defined]  # noqa: F821

        def __call__(self) -> int: ...

    def items(value: int) -> Iterator[tuple[int, str]]: ...

    def missing() -> Missing: ...  # type: ignore[name-defined]  # noqa: F821

    pair = Types.TUPLE([Types.LONG(), Types.STRING()])
    assert find_return_type(Callable().map) == Types.LIST(Types.DATACLASS(Order))
    assert find_return_type(Callable().map, element=True) == Types.DATACLASS(Order)
    assert find_return_type(Callable()) == Types.LONG()
    assert find_return_type(items, element=True) == pair
    assert find_return_type(functools.partial(items, 1), element=True) == pair
    for unknown in (items, missing, lambda: 1, len, 5):
        assert find_return_type(unknown) is None
