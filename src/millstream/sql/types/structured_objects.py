"""Python objects of structured types.

Promises: a value of a structured type is an object of its class if the class (`module.Class`) is a dataclass in a
module that the program has imported. Otherwise it is a row. The text of a statement never causes an import.
Does not know: columns, and how the fields are stored."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any

from millstream.sql.errors import SqlValidationError
from millstream.sql.types import data_types as t
from millstream.types.row import Row


def find_constructor(data_type: t.RowType) -> Callable[[Sequence[Any]], Any]:
    """Return a function that creates an object, or a row, from the values of its fields.

    Raises:
        SqlValidationError: If the fields of the type and of the dataclass do not fit together.

    """
    names = data_type.names
    cls = _find_dataclass(data_type.class_name) if isinstance(data_type, t.StructuredType) else None
    if cls is None:
        return lambda values: Row._from(list(names), list(values))
    parameters = {field.name: field for field in dataclasses.fields(cls) if field.init}
    unknown = [name for name in names if name not in parameters]
    missing = [name for name, field in parameters.items() if name not in names and _is_required(field)]
    if unknown or missing:
        problem = f"has no field '{unknown[0]}'" if unknown else f"needs a field '{missing[0]}'"
        message = f"the class of {data_type.nullable()} {problem}"
        raise SqlValidationError(message, hint=f"{cls.__qualname__} has the fields {', '.join(parameters)}")
    create: Callable[..., Any] = cls
    return lambda values: create(**dict(zip(names, values, strict=True)))


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _find_dataclass(name: str) -> type | None:
    """Return the dataclass with this qualified name; None if it is not imported. Importing it here would run code."""
    module, _, class_name = name.rpartition(".")
    cls = getattr(sys.modules.get(module), class_name, None)
    return cls if isinstance(cls, type) and dataclasses.is_dataclass(cls) else None
