"""Methods of JSON in strings.

Promises: PyFlink's names; what happens on nothing and on errors is said by the caller.
Does not know: how JSON is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression.terms import Term, node, symbol
from millstream.table.expression.words import (
    JsonExistsOnError,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
)

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Json(Term):
    """What can be asked of a string that holds JSON."""

    __slots__ = ()

    def is_json(self, json_type: JsonType | None = None) -> Expression:
        """Whether the string is JSON."""
        return self._call("IS JSON", self, symbol("VALUE" if json_type is None else json_type.value))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression:
        """Whether a path leads to something."""
        how = [] if on_error is None else [s.NamedArgument(0, "ON ERROR", symbol(on_error.value))]
        return self._call("JSON_EXISTS", self, path, *how)

    def json_value(
        self,
        path: str,
        returning_type: t.DataType = t.STRING,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression:
        """A scalar of a JSON document."""
        args: list[Any] = [self, path, s.Cast(0, s.Literal(0, None), returning_type)]
        for event, how, default in (("ON EMPTY", on_empty, default_on_empty), ("ON ERROR", on_error, default_on_error)):
            value = node(default) if how is JsonValueOnEmptyOrError.DEFAULT else symbol(how.value)
            args.append(s.NamedArgument(0, event, value))
        return self._call("JSON_VALUE", *args)

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression:
        """An object or array of a JSON document."""
        handling = [
            s.NamedArgument(0, event, symbol(how.value))
            for event, how in (("ON EMPTY", on_empty), ("ON ERROR", on_error))
        ]
        return self._call("JSON_QUERY", self, path, symbol(wrapping_behavior.value), *handling)

    def json_quote(self) -> Expression:
        """As a JSON string."""
        return self._call("JSON_QUOTE", self)

    def json_unquote(self) -> Expression:
        """What a JSON string stands for."""
        return self._call("JSON_UNQUOTE", self)
