"""The contract of model providers, which the option 'provider' of CREATE MODEL names.

Promises: the options and columns of a model are checked when a statement is planned, before a job runs.
Does not know: the providers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from millstream.sql.catalog.catalog import ColumnDefinition
from millstream.sql.catalog.models import ModelDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class ModelContext:
    """A model whose predict function is created.

    Attributes:
        name: The full name of the model.
        model: The definition of the model.
        capacity: How many calls of an asynchronous function are in flight at once.
        timeout: The time in seconds after which a call of an asynchronous function fails.

    """

    name: tuple[str, ...]
    model: ModelDefinition
    capacity: int = 10
    timeout: float = 180.0

    def fail(self, message: str, hint: str | None = None) -> SqlValidationError:
        """Create an error that names the model; the caller raises it."""
        return SqlValidationError(f"model '{'.'.join(self.name)}': {message}", hint=hint, about=self.name[-1])

    def check(self, known: Iterable[str]) -> None:
        """Raise if the model has an option that is not in `known`."""
        names = [*known, "provider"]
        for key in self.model.options:
            if key not in names:
                message = f"unknown option '{key}'"
                raise self.fail(message, nearest(key, names))

    def text(self, *keys: str) -> str | None:
        """Return the value of an option, by its key or a deprecated one; None if it is not set."""
        return next((self.model.options[key] for key in keys if key in self.model.options), None)

    def required(self, key: str) -> str:
        """Return the value of an option; raise if it is missing."""
        value = self.text(key)
        if value is None:
            message = f"option '{key}' is missing"
            raise self.fail(message)
        return value

    def number(self, parse: type[int] | type[float], *keys: str) -> int | float | None:
        """Return the value of an option as a number; None if it is not set."""
        value = self.text(*keys)
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError:
            message = f"option '{keys[0]}' must be {'an integer' if parse is int else 'a number'}, not '{value}'"
            raise self.fail(message) from None

    def word(self, key: str, words: Iterable[str], default: str | None) -> str | None:
        """Return the value of an option that is one of `words`, in any case."""
        value = self.text(key)
        if value is None:
            return default
        folded = {word.replace("_", "-"): word for word in words}
        word = folded.get(value.lower().replace("_", "-"))
        if word is None:
            message = f"option '{key}' must be {', '.join(words)}, not '{value}'"
            raise self.fail(message, nearest(value, words))
        return word

    def single_column(self, columns: tuple[ColumnDefinition, ...], expected: t.DataType, side: str) -> ColumnDefinition:
        """Return the only physical column of the input or the output, which must have the expected type."""
        physical = [column for column in columns if column.is_physical]
        if len(physical) != 1:
            message = f"it must have exactly one {side} column, and has {len(physical)}"
            raise self.fail(message)
        if not physical[0].type.nullable().same(expected):
            message = f"{side} column '{physical[0].name}' must be {expected}, not {physical[0].type}"
            raise self.fail(message)
        return physical[0]


@dataclass(frozen=True)
class PredictFunction:
    """How a model predicts.

    Attributes:
        function: An object that can be pickled. Its `eval` takes the features of a row and returns or, if it is
            asynchronous, awaits a list of predictions. With `takes_batches` its method `predict_rows` takes a list of
            rows and returns one prediction for each. `open` and `close` are called if it has them.
        asynchronous: Whether `eval` is a coroutine function.
        takes_batches: Whether it has `predict_rows` instead of `eval`.

    """

    function: Any
    asynchronous: bool = False
    takes_batches: bool = False


@dataclass(frozen=True)
class ModelProvider:
    """A provider of models: its name, and a function that checks a model and creates its predict function."""

    name: str
    create: Callable[[ModelContext], PredictFunction]
