"""The Python classes of structured types: which class a type names, and its objects.

Promises: an object of a type whose class is a dataclass of a module that the program has imported (`module.Class`) is
one of that class; of any other, it is a row. No text makes a module be imported.
Does not know: columns, or how the fields are stored."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.types import data_types as t
from millstream.types.row import Row


def maker(kind: t.RowType) -> Callable[[Sequence[Any]], Any]:
    """What makes an object, or a row, of the values of its fields."""
    names = kind.names
    found = _dataclass(kind.class_name) if isinstance(kind, t.StructuredType) else None
    if found is None:
        return lambda values: Row._from(list(names), list(values))
    taken = {each.name: each for each in dataclasses.fields(found) if each.init}
    strange = [name for name in names if name not in taken]
    missing = [name for name, each in taken.items() if name not in names and _is_required(each)]
    if strange or missing:
        wrong = f"has no field '{strange[0]}'" if strange else f"needs a field '{missing[0]}'"
        message = f"the class of {kind.nullable()} {wrong}"
        raise SqlValidationError(message, hint=f"{found.__qualname__} has the fields {', '.join(taken)}")
    make: Callable[..., Any] = found
    return lambda values: make(**dict(zip(names, values, strict=True)))


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _dataclass(name: str) -> type | None:
    """The dataclass of that name; None where there is none. A text of SQL imports nothing: to import is to run."""
    module, _, called = name.rpartition(".")
    found = getattr(sys.modules.get(module), called, None)
    return found if isinstance(found, type) and dataclasses.is_dataclass(found) else None
