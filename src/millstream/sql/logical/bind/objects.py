"""The types of OBJECT_OF and OBJECT_UPDATE: they follow from class and field names, which are literals.

Promises: names that are repeated, unknown or no literals are refused; a replaced field has the type of its new value.
Does not know: values."""

from __future__ import annotations

from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Apply, Expression, Lit
from millstream.sql.types import data_types as t


def object_of(args: list[Expression], at: int | None) -> Expression:
    """OBJECT_OF of bound arguments."""
    if len(args) % 2 == 0:
        message = "OBJECT_OF takes the name of a class, then names of fields and their values in turn"
        raise SqlValidationError(message, at=at, hint="it is used as OBJECT_OF(class, [field, value, ...])")
    called = _literal(args[0], "the name of the class", at)
    if not t.is_class_name(called):
        message = f"'{called}' cannot be the name of a class"
        raise SqlValidationError(message, at=at)
    fields = tuple(t.RowField(name, kind) for name, kind in _given(args[1:], at).items())
    return Apply(t.StructuredType(fields, called), "OBJECT_OF", tuple(args))


def object_update(args: list[Expression], at: int | None) -> Expression:
    """OBJECT_UPDATE of bound arguments."""
    if len(args) % 2 == 0:
        message = "OBJECT_UPDATE takes an object, then names of fields and their new values in turn"
        raise SqlValidationError(message, at=at, hint="it is used as OBJECT_UPDATE(object, [field, value, ...])")
    kind = args[0].type
    if not isinstance(kind, t.StructuredType):
        message = f"OBJECT_UPDATE takes an object of a structured type, not {kind}"
        raise SqlValidationError(message, at=at, hint="OBJECT_OF makes one")
    new = _given(args[1:], at)
    for name in new:
        if name not in kind.names:
            message = f"'{kind.class_name}' has no field '{name}'"
            raise SqlValidationError(message, at=at, hint=nearest(name, kind.names))
    fields = tuple(t.RowField(each.name, new.get(each.name, each.data_type)) for each in kind.fields)
    return Apply(t.StructuredType(fields, kind.class_name), "OBJECT_UPDATE", tuple(args))


def _given(pairs: list[Expression], at: int | None) -> dict[str, t.DataType]:
    """The types of the values of fields, by the names of these."""
    found: dict[str, t.DataType] = {}
    for named, value in zip(pairs[::2], pairs[1::2], strict=True):
        name = _literal(named, "the name of a field", at)
        if name in found:
            message = f"the field '{name}' is there twice"
            raise SqlValidationError(message, at=at)
        if isinstance(value.type, t.NullType):
            message = f"the value of the field '{name}' has no type"
            raise SqlValidationError(message, at=at, hint="CAST(NULL AS INT) has one")
        found[name] = t.plain(value.type)
    return found


def _literal(given: Expression, what: str, at: int | None) -> str:
    if not isinstance(given, Lit) or not isinstance(given.value, str):
        message = f"{what} has to be a literal, such as 'name'"
        raise SqlValidationError(message, at=at)
    return given.value
