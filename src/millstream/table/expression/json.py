"""Functions of JSON strings as methods of expressions.

Promises: PyFlink's names. The caller chooses the result for missing values and for errors.
Does not know: how JSON is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression.symbols import (
    JsonExistsOnError,
    JsonQueryOnEmptyOrError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
)
from millstream.table.expression.terms import Term, symbol, to_node

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Json(Term):
    """Functions of strings that contain JSON."""

    __slots__ = ()

    def is_json(self, json_type: JsonType | None = None) -> Expression:
        """Return whether the string is valid JSON, of a certain type if one is given."""
        return self._call("IS JSON", self, symbol("VALUE" if json_type is None else json_type.value))

    def json_exists(self, path: str, on_error: JsonExistsOnError | None = None) -> Expression:
        """Return whether a path selects a value.

        Args:
            path: A JSON path, such as `$.a.b`.
            on_error: The result if the JSON or the path is not valid; FALSE by default.

        """
        behavior = [] if on_error is None else [s.NamedArgument(0, "ON ERROR", symbol(on_error.value))]
        return self._call("JSON_EXISTS", self, path, *behavior)

    def json_value(
        self,
        path: str,
        returning_type: t.DataType = t.STRING,
        on_empty: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_empty: Any = None,
        on_error: JsonValueOnEmptyOrError = JsonValueOnEmptyOrError.NULL,
        default_on_error: Any = None,
    ) -> Expression:
        """Extract a scalar.

        Args:
            path: A JSON path, such as `$.a.b`.
            returning_type: The type of the result.
            on_empty: The result if the path selects nothing.
            default_on_empty: The value for `on_empty` DEFAULT.
            on_error: The result if an error occurs.
            default_on_error: The value for `on_error` DEFAULT.

        """
        args: list[Any] = [self, path, s.Cast(0, s.Literal(0, None), returning_type)]
        for clause, behavior, default in (
            ("ON EMPTY", on_empty, default_on_empty),
            ("ON ERROR", on_error, default_on_error),
        ):
            value = to_node(default) if behavior is JsonValueOnEmptyOrError.DEFAULT else symbol(behavior.value)
            args.append(s.NamedArgument(0, clause, value))
        return self._call("JSON_VALUE", *args)

    def json_query(
        self,
        path: str,
        wrapping_behavior: JsonQueryWrapper = JsonQueryWrapper.WITHOUT_ARRAY,
        on_empty: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
        on_error: JsonQueryOnEmptyOrError = JsonQueryOnEmptyOrError.NULL,
    ) -> Expression:
        """Extract an object or an array as JSON.

        Args:
            path: A JSON path, such as `$.a`.
            wrapping_behavior: Whether the result is wrapped in an array.
            on_empty: The result if the path selects nothing.
            on_error: The result if an error occurs.

        """
        behaviors = [
            s.NamedArgument(0, clause, symbol(behavior.value))
            for clause, behavior in (("ON EMPTY", on_empty), ("ON ERROR", on_error))
        ]
        return self._call("JSON_QUERY", self, path, symbol(wrapping_behavior.value), *behaviors)

    def json_quote(self) -> Expression:
        """Quote the string as a JSON string."""
        return self._call("JSON_QUOTE", self)

    def json_unquote(self) -> Expression:
        """Return the text of a JSON string."""
        return self._call("JSON_UNQUOTE", self)
