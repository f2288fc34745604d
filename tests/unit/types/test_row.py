"""Row behaves as in PyFlink; the expected values were recorded there."""

from __future__ import annotations

import copy
import pickle

import pytest

from millstream.types.row import Row, RowKind, UnknownRowField, create_rows


def test_texts() -> None:
    assert repr(Row(1, "a")) == "<Row(1, 'a')>"
    assert str(Row(name="Ann", age=11)) == "Row(name='Ann', age=11)"
    assert repr(Row("a", "b")(1, 2)) == "Row(a=1, b=2)"
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]


def test_fields_are_read_by_index_name_and_attribute() -> None:
    row = Row(name="Ann", age=11)
    assert (row[0], row["age"], row.name, row[0:1], list(row), len(row)) == ("Ann", 11, "Ann", ["Ann"], ["Ann", 11], 2)
    row["age"] = 12
    row[0] = "Bob"
    assert row.as_dict() == {"name": "Bob", "age": 12}
    assert "age" in row
    assert "x" not in row
    assert 1 in Row(1, 2)


@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        (lambda: Row(1).as_dict(), TypeError),
        (lambda: Row(1)["a"], AttributeError),
        (lambda: Row(1).a, AttributeError),
        (lambda: Row(1)[5], IndexError),
        (lambda: Row(a=1)["b"], ValueError),
        (lambda: Row(a=1).b, AttributeError),
        (lambda: Row("a")(1, 2), ValueError),
        (lambda: Row(1, a=2), ValueError),
        (lambda: setattr(Row(a=1), "a", 2), AttributeError),
        (lambda: Row(1).__setitem__("a", 1), KeyError),
        (lambda: Row(a=1).__setitem__("b", 1), ValueError),
        (lambda: Row(a=1).get_fields_by_names(["b"]), UnknownRowField),
    ],
)
def test_misuse_raises_the_error_of_pyflink(attempt: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        attempt()  # type: ignore[operator]


def test_equality_includes_row_kind_and_names_but_not_the_order_of_names() -> None:
    assert Row(a=1, b=2) == Row(b=2, a=1)
    assert Row(a=1) != Row(1)
    assert Row(1, 2) != (1, 2)
    assert Row(1) != Row.of_kind(RowKind.DELETE, 1)
    assert hash(Row(1, 2)) == hash((1, 2))


def test_as_dict_converts_nested_rows_only_if_recursive() -> None:
    row = Row(a=[Row(b=1)], c={"d": Row(e=2)})
    assert row.as_dict(True) == {"a": [{"b": 1}], "c": {"d": {"e": 2}}}
    assert row.as_dict()["a"] == [Row(b=1)]


@pytest.mark.parametrize("row", [Row(), Row(1, None), Row(a=1), Row.of_kind(RowKind.UPDATE_BEFORE, a=Row(b=2))])
def test_copies_are_equal(row: Row) -> None:
    assert pickle.loads(pickle.dumps(row)) == row
    assert copy.deepcopy(row) == row


def test_rows_that_are_created_from_columns_are_rows() -> None:
    rows = create_rows(["a", "b"], [(1, "x"), (2, "y")], 2)
    assert rows == [Row(a=1, b="x"), Row(a=2, b="y")]
    rows[0].set_row_kind(RowKind.DELETE)
    rows[0][0] = 5
    assert rows == [Row.of_kind(RowKind.DELETE, a=5, b="x"), Row(a=2, b="y")]
