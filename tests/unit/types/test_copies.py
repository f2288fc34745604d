"""Copies of records: equal, of the same types, and without a mutable part in common with the original."""

from __future__ import annotations

import datetime
import decimal
import enum
import threading
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from millstream.common import Row, RowKind, Types
from millstream.types.copies import copy_records, copy_value, find_copier

Point = namedtuple("Point", "x tags")


class Color(enum.Enum):
    RED = 1


class Plain:
    def __init__(self, tags: list[int]) -> None:
        self.tags = tags

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and other.tags == self.tags

    __hash__ = None  # type: ignore[assignment]


class Slotted:
    __slots__ = ("tags",)

    def __init__(self, tags: list[int]) -> None:
        self.tags = tags

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and other.tags == self.tags

    __hash__ = None  # type: ignore[assignment]


class CopiesItself:
    def __init__(self, copies: int = 0) -> None:
        self.copies = copies

    def __deepcopy__(self, memo: dict[int, Any]) -> CopiesItself:
        return CopiesItself(self.copies + 1)


@dataclass(frozen=True)
class Frozen:
    name: str
    tags: list[int] = field(default_factory=list)


class Numbers(list[int]):
    """A list with an attribute."""

    def __init__(self, *values: int) -> None:
        super().__init__(values)
        self.name = "numbers"


IMMUTABLE = [
    None,
    1,
    1.5,
    "text",
    b"bytes",
    (1, "a", None),
    (),
    decimal.Decimal("1.5"),
    datetime.date(2024, 1, 2),
    Color.RED,
    np.int64(3),
    int,
    len,
]


@pytest.mark.parametrize("value", IMMUTABLE, ids=repr)
def test_a_value_that_cannot_change_is_not_copied(value: Any) -> None:
    assert copy_value(value) is value


def tags_of(value: Any) -> list[int]:
    """Return the list inside of each value of the test below."""
    inside = {
        list: lambda v: v,
        tuple: lambda v: v[1],
        dict: lambda v: v["tags"],
        Point: lambda v: v.tags,
        Row: lambda v: v[0],
        OrderedDict: lambda v: v["tags"],
        deque: lambda v: v[0],
    }
    tags: list[int] = inside.get(type(value), lambda v: v.tags)(value)
    return tags


@pytest.mark.parametrize(
    "value",
    [
        [1],
        ("a", [1]),
        {"tags": [1]},
        Point(1, [1]),
        Row([1], "x"),
        Row(tags=[1], other="x"),
        Plain([1]),
        Slotted([1]),
        Frozen("n", [1]),
        OrderedDict(tags=[1]),
        deque([[1]]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_copy_shares_no_mutable_part(value: Any) -> None:
    duplicate = copy_value(value)
    assert type(duplicate) is type(value)
    assert duplicate == value
    tags_of(value).append(2)
    assert tags_of(duplicate) == [1]


def test_a_copied_row_has_its_row_kind_and_field_names() -> None:
    row = Row.of_kind(RowKind.DELETE, a=1, b=[2])
    duplicate = copy_value(row)
    assert (duplicate, duplicate.get_row_kind(), duplicate.as_dict()) == (row, RowKind.DELETE, {"a": 1, "b": [2]})
    row["b"] = 3
    assert duplicate.b == [2]


def test_arrays_and_sets_are_copied() -> None:
    array, numbers, data = np.array([1, 2]), {1}, bytearray(b"a")
    copies = [copy_value(value) for value in (array, numbers, data)]
    array[0], _, data[0] = 9, numbers.add(2), 98
    assert (copies[0].tolist(), copies[1], copies[2]) == ([1, 2], {1}, b"a")


def test_the_copy_method_of_a_class_is_called() -> None:
    assert copy_value([CopiesItself()])[0].copies == 1


def test_a_subclass_of_a_list_keeps_its_attributes() -> None:
    duplicate = copy_value(Numbers(1, 2))
    assert (type(duplicate), duplicate, duplicate.name) == (Numbers, [1, 2], "numbers")


def test_a_value_that_contains_itself_is_copied() -> None:
    value: list[Any] = [1]
    value.append(value)
    duplicate = copy_value(value)
    assert duplicate is not value
    assert duplicate[1] is duplicate


def test_a_value_that_has_no_copy_is_passed_on() -> None:
    lock = threading.Lock()
    assert copy_value({"lock": lock})["lock"] is lock


def test_records_of_scalar_types_need_no_copies() -> None:
    assert find_copier(Types.INT()) is find_copier(Types.STRING()) is None
    records = [1, 2]
    assert copy_records(Types.INT(), records) is records
    copy_pair = find_copier(Types.TUPLE([Types.INT(), Types.STRING()]))
    pair, as_list = (1, "a"), [1, "a"]
    assert copy_pair is not None
    assert copy_pair(pair) is pair
    assert copy_pair(as_list) == as_list
    assert copy_pair(as_list) is not as_list
    assert find_copier(Types.PICKLED_BYTE_ARRAY()) is find_copier(Types.ROW([Types.INT()])) is copy_value
