"""Functions that users write, as plans hold them.

Promises: general functions are called once a row, pandas ones once a batch with Series, Arrow ones with arrays; what
they return is checked against the declared type.
Does not know: how they are declared; the Table API does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.model.arrow_types import TypeMismatch
from millstream.runtime.rowwise import failure
from millstream.sql import types as t
from millstream.sql.columns import SqlTypeInfo, arrow_type

SCALAR, TABLE, AGGREGATE, TABLE_AGGREGATE = "scalar", "table", "aggregate", "table aggregate"


class WrongResult(UserError):
    """A user's function returned what its declared type does not hold."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"function '{name}': {problem}", hint="declare the type it returns, or return that type")


@dataclass(frozen=True)
class UserFunction:
    """A function with its types. `input_types` are None where any arguments will do."""

    name: str
    kind: str
    function: Any = field(compare=False)
    result_type: t.DataType | None = None
    input_types: tuple[t.DataType, ...] | None = None
    pandas: bool = False
    arrow: bool = False
    deterministic: bool = True
    accumulator_type: t.DataType | None = None
    takes_row: bool = False

    def open(self) -> None:
        """Called before the first row, where the function has something to open."""

    def call(
        self, columns: Sequence[list[Any]], count: int, kind: t.DataType, arrays: Sequence[pa.Array] | None
    ) -> pa.Array:
        """The results for whole columns of arguments."""
        if self.arrow or self.pandas:
            return self._vectorized(arrays or [], count, kind)
        evaluate: Callable[..., Any] = self.function.eval if hasattr(self.function, "eval") else self.function
        made: list[Any] = []
        values: tuple[Any, ...] = ()
        try:
            for values in zip(*columns, strict=True) if columns else [()] * count:
                made.append(evaluate(*values))
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem, record=values) from problem
        return self.converted(made, kind)

    def _vectorized(self, arrays: Sequence[pa.Array], count: int, kind: t.DataType) -> pa.Array:
        evaluate: Callable[..., Any] = self.function.eval if hasattr(self.function, "eval") else self.function
        given = list(arrays) if self.arrow else [array.to_pandas() for array in arrays]
        try:
            result = evaluate(*given)
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem) from problem
        if len(result) != count:
            raise WrongResult(self.name, f"it was given {count} rows and returned {len(result)}")
        if isinstance(result, pa.ChunkedArray):
            result = result.combine_chunks()
        if isinstance(result, pa.Array):
            return result.cast(arrow_type(kind))
        return pa.array(result, arrow_type(kind), from_pandas=True)

    def converted(self, values: list[Any], kind: t.DataType) -> pa.Array:
        """What the function returned, as a column of its type."""
        try:
            return SqlTypeInfo(kind).to_arrow(values)
        except TypeMismatch as problem:
            raise WrongResult(self.name, str(problem)) from None
