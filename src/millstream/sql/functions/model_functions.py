"""The table functions of models, which ML_PREDICT calls.

Promises: a function that takes whole batches is called once for each batch, and must return a prediction for each row.
Does not know: providers, and where models run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.runtime.rowwise import failure
from millstream.sql.functions.function_context import ASYNC_DEFAULTS, AsyncOptions
from millstream.sql.functions.user_functions import UserFunction, WrongResult


@dataclass(frozen=True)
class ModelFunction(UserFunction):
    """A model as a table function; its result is not deterministic, so it takes insert-only tables.

    Attributes:
        async_options: How an asynchronous model is called.
        takes_batches: Whether the function has a method `predict_rows` for all rows of a batch.

    """

    async_options: AsyncOptions = ASYNC_DEFAULTS
    takes_batches: bool = False

    def predict_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
        """Return a list with the prediction of each row."""
        if not rows:
            return []
        try:
            predictions = self.function.predict_rows(rows)
        except (Exception, SystemExit) as problem:
            raise failure(self.name, problem, record=rows[0]) from problem
        if len(predictions) != len(rows):
            raise WrongResult(self.name, f"it got {len(rows)} rows and returned {len(predictions)} predictions")
        return [[prediction] for prediction in predictions]
