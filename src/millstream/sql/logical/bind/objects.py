"""Binding of OBJECT_OF and OBJECT_UPDATE, whose types depend on class and field names, which must be literals.

Promises: names that are repeated, unknown or not literals are refused; a replaced field has the type of its new value.
Does not know: values."""

from __future__ import annotations

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Apply, Expression, Lit
from millstream.sql.types import data_types as t


def bind_object_of(args: list[Expression], at: int | None) -> Expression:
    """Bind OBJECT_OF."""
    if len(args) % 2 == 0:
        message = "OBJECT_OF takes the name of a class, then names of fields and their values in turn"
        raise SqlValidationError(message, at=at, hint="it is used as OBJECT_OF(class, [field, value, ...])")
    class_name = _bind_literal(args[0], "the name of the class", at)
    if not t.is_class_name(class_name):
        message = f"'{class_name}' cannot be the name of a class"
        raise SqlValidationError(message, at=at)
    fields = tuple(t.RowField(name, data_type) for name, data_type in _read_field_types(args[1:], at).items())
    return Apply(t.StructuredType(fields, class_name), "OBJECT_OF", tuple(args))


def bind_object_update(args: list[Expression], at: int | None) -> Expression:
    """Bind OBJECT_UPDATE."""
    if len(args) % 2 == 0:
        message = "OBJECT_UPDATE takes an object, then names of fields and their new values in turn"
        raise SqlValidationError(message, at=at, hint="it is used as OBJECT_UPDATE(object, [field, value, ...])")
    object_type = args[0].type
    if not isinstance(object_type, t.StructuredType):
        message = f"OBJECT_UPDATE takes an object of a structured type, not {object_type}"
        raise SqlValidationError(message, at=at, hint="create one with OBJECT_OF")
    new_types = _read_field_types(args[1:], at)
    for name in new_types:
        if name not in object_type.names:
            message = f"'{object_type.class_name}' has no field '{name}'"
            raise SqlValidationError(message, at=at, hint=nearest(name, object_type.names))
    fields = tuple(t.RowField(field.name, new_types.get(field.name, field.data_type)) for field in object_type.fields)
    return Apply(t.StructuredType(fields, object_type.class_name), "OBJECT_UPDATE", tuple(args))


def _read_field_types(pairs: list[Expression], at: int | None) -> dict[str, t.DataType]:
    """Return the types of the fields, by name."""
    field_types: dict[str, t.DataType] = {}
    for name_expr, value in zip(pairs[::2], pairs[1::2], strict=True):
        name = _bind_literal(name_expr, "the name of a field", at)
        if name in field_types:
            message = f"the field '{name}' occurs twice"
            raise SqlValidationError(message, at=at)
        if isinstance(value.type, t.NullType):
            message = f"the value of the field '{name}' has no type"
            raise SqlValidationError(message, at=at, hint="cast it, as in CAST(NULL AS INT)")
        field_types[name] = t.strip_time_attribute(value.type)
    return field_types


def _bind_literal(expression: Expression, what: str, at: int | None) -> str:
    if not isinstance(expression, Lit) or not isinstance(expression.value, str):
        message = f"{what} must be a literal, such as 'name'"
        raise SqlValidationError(message, at=at)
    return expression.value
