"""Row: values in a fixed order with optional field names and a row kind.

Promises: a Row behaves like PyFlink's (access by index, name and attribute; equality includes the row kind; text). It
can be pickled, and many rows are created quickly from columns.
Does not know: types. A RowTypeInfo declares the types of the fields."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import repeat
from typing import Any

from millstream.errors import UserError


class RowKind(Enum):
    """The change that a row makes to the table it belongs to.

    Example:
        >>> str(RowKind.UPDATE_AFTER)
        '+U'

    """

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _KIND_TEXT[self.value]


_KIND_TEXT = ("+I", "-U", "+U", "-D")
KINDS: tuple[RowKind, ...] = tuple(RowKind)
_INSERT = RowKind.INSERT


class UnknownRowField(UserError):
    """A row does not have the requested fields."""

    def __init__(self, missing: Sequence[str], names: Sequence[str]) -> None:
        self.missing = tuple(missing)
        self.names = tuple(names)
        super().__init__(f"field names {list(missing)} not exist in {list(names)}")


class Row:
    """A record of values in a fixed order, with or without field names.

    `Row(name="Ann", age=11)` has named fields and `Row("Ann", 11)` has none. A row of names creates rows with these
    names when it is called: `Row("name", "age")("Ann", 11)`. Only attributes of the fields can be set.

    Example:
        >>> row = Row(name="Ann", age=11)
        >>> row.name, row[1], row["age"]
        ('Ann', 11, 11)

    """

    __slots__ = ("_fields", "_row_kind", "_values")

    _fields: list[str]
    _values: list[Any]
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            msg = "Can not use both args and kwargs to create Row"
            raise ValueError(msg)
        if kwargs:
            _SET_FIELDS(self, list(kwargs))
            _SET_VALUES(self, list(kwargs.values()))
        else:
            _SET_VALUES(self, list(args))
        _SET_KIND(self, _INSERT)

    @staticmethod
    def _from(names: list[str] | None, values: list[Any], kind: RowKind = _INSERT) -> Row:
        """Return a row that uses the given lists without copying them."""
        row = _new(Row)
        if names is not None:
            _SET_FIELDS(row, names)
        _SET_VALUES(row, values)
        _SET_KIND(row, kind)
        return row

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """Create a row with a row kind.

        Args:
            row_kind: The row kind.
            *args: The values, as for `Row`.
            **kwargs: The values by name, as for `Row`.

        """
        row = Row(*args, **kwargs)
        _SET_KIND(row, row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the fields by name.

        Args:
            recursive: Whether rows in fields, lists and dicts are converted too.

        Raises:
            TypeError: If the row has no field names.

        """
        if not hasattr(self, "_fields"):
            msg = "Cannot convert a Row class into dict"
            raise TypeError(msg)
        values = map(_to_plain_value, self._values) if recursive else self._values
        return dict(zip(self._fields, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """Return the row kind."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the row kind.

        Args:
            row_kind: The row kind.

        """
        _SET_KIND(self, row_kind)

    def set_field_names(self, field_names: list[str]) -> None:
        """Set the names of the fields, in order.

        Args:
            field_names: One name for each field.

        """
        _SET_FIELDS(self, field_names)

    def get_fields_by_names(self, names: list[str]) -> list[Any]:
        """Return the values in the order of `names`; a row without names returns its values in their order.

        Args:
            names: The names of the fields.

        Raises:
            UnknownRowField: If the row does not have one of the fields.

        """
        if not hasattr(self, "_fields") or names == self._fields:
            return self._values
        missing = [name for name in names if name not in self._fields]
        if missing:
            raise UnknownRowField(missing, self._fields)
        return [self._values[self._fields.index(name)] for name in names]

    def _is_retract_msg(self) -> bool:
        return self._row_kind in (RowKind.UPDATE_BEFORE, RowKind.DELETE)

    def _is_accumulate_msg(self) -> bool:
        return self._row_kind in (RowKind.UPDATE_AFTER, RowKind.INSERT)

    def __contains__(self, item: Any) -> bool:
        names = getattr(self, "_fields", None)
        return item in (self._values if names is None else names)

    def __call__(self, *args: Any) -> Row:
        """Create a row whose field names are the values of this row."""
        if len(args) > len(self):
            msg = f"Can not create Row with fields {self}, expected {len(self)} values but got {args}"
            raise ValueError(msg)
        return Row._from(self._values, list(args), self._row_kind)

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, (int, slice)):
            return self._values[item]
        try:
            return self._values[self._fields.index(item)]
        except IndexError:
            raise KeyError(item) from None
        except ValueError:
            raise ValueError(item) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, (int, slice)):
            self._values[key] = value
            return
        try:
            self._values[self._fields.index(key)] = value
        except (IndexError, AttributeError):
            raise KeyError(key) from None
        except ValueError:
            raise ValueError(value) from None

    def __getattr__(self, item: str) -> Any:
        if item.startswith("_"):
            raise AttributeError(item)
        try:
            return self._values[self._fields.index(item)]
        except (IndexError, ValueError):
            raise AttributeError(item) from None

    def __setattr__(self, key: str, value: Any) -> None:
        if key not in Row.__slots__:
            raise AttributeError(key)
        object.__setattr__(self, key, value)

    def __reduce__(self) -> tuple[Any, ...]:
        slots: dict[str, Any] = {} if self._row_kind is _INSERT else {"_row_kind": self._row_kind}
        if hasattr(self, "_fields"):
            slots["_fields"] = self._fields
        return (Row, tuple(self._values), (None, slots)) if slots else (Row, tuple(self._values))

    def __repr__(self) -> str:
        if hasattr(self, "_fields"):
            return f"Row({', '.join(f'{k}={v!r}' for k, v in zip(self._fields, self._values, strict=False))})"
        return f"<Row({', '.join(map(repr, self._values))})>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or type(self) is not type(other) or self._row_kind is not other._row_kind:
            return False
        names: list[str] | None = getattr(self, "_fields", None)
        other_names: list[str] | None = getattr(other, "_fields", None)
        if names == other_names:
            return self._values == other._values
        if names is None or other_names is None or sorted(names) != sorted(other_names):
            return False
        return all(self._values[names.index(name)] == other._values[other_names.index(name)] for name in names)

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


# The setters of the slots, which are faster than __setattr__.
_new: Callable[[type[Row]], Row] = Row.__new__
_SET_FIELDS: Callable[[Row, Any], None] = Row.__dict__["_fields"].__set__
_SET_VALUES: Callable[[Row, Any], None] = Row.__dict__["_values"].__set__
_SET_KIND: Callable[[Row, Any], None] = Row.__dict__["_row_kind"].__set__


def _to_plain_value(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(True)
    if isinstance(value, list):
        return [_to_plain_value(item) for item in value]
    if isinstance(value, dict):
        return {key: _to_plain_value(item) for key, item in value.items()}
    return value


def create_rows(names: list[str], records: Iterable[Iterable[Any]], count: int) -> list[Row]:
    """Create `count` inserted rows with the same field names, one for each record of values."""
    rows = list(map(_new, repeat(Row, count)))
    # The slots are set by their descriptors, slot by slot, so that no bytecode is executed for each row.
    deque(map(_SET_FIELDS, rows, repeat(names)), 0)
    deque(map(_SET_VALUES, rows, map(list, records)), 0)
    deque(map(_SET_KIND, rows, repeat(_INSERT)), 0)
    return rows
