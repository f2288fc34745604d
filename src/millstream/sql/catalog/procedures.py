"""Stored procedures of a catalog, which CALL executes.

Promises: arguments are matched to parameters by position and by name, and defaults of the Python function apply.
Does not know: what a procedure does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class ProcedureDefinition:
    """A Python function that gets a context and arguments, and returns rows.

    Attributes:
        function: The function; its first parameter is the context.
        input_types: The types of the parameters after the context.
        result_type: The type of a row, or of the only column, which is then called `result`.

    """

    function: Callable[..., Any]
    input_types: tuple[t.DataType, ...]
    result_type: t.DataType

    def parameters(self) -> list[inspect.Parameter]:
        """Return the parameters without the context."""
        return list(inspect.signature(self.function).parameters.values())[1:]

    def result_schema(self) -> t.RowType:
        """Return the row type of the result."""
        if isinstance(self.result_type, t.RowType):
            return self.result_type
        return t.row_of(["result"], [self.result_type], null=False)
