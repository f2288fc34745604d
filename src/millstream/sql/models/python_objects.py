"""The provider `python`: a Python object as a model.

Promises: the option 'object' is the import path of a callable, of an object with a method `predict` as scikit-learn's
models have it, or of an ONNX session. It is imported by each task, so it need not be picklable.
Does not know: queries."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from millstream.errors import UserError
from millstream.sql.models.provider import ModelContext, ModelProvider, PredictFunction
from millstream.sql.types import data_types as t

_ONNX_TYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
}


class NotAModel(UserError):
    """An imported object cannot predict."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"'{path}' cannot be used as a model: {problem}")
        self.hint = "it must be a callable, have a method predict, or be an onnxruntime.InferenceSession"


def import_object(path: str) -> Any:
    """Import an object by 'module.name'; a class is instantiated without arguments."""
    module, _, name = path.replace(":", ".").rpartition(".")
    try:
        imported = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as problem:
        raise NotAModel(path, f"it cannot be imported: {problem}") from None
    return imported() if isinstance(imported, type) else imported


def _has_predict(model: Any, method: str | None) -> bool:
    return method is not None or callable(getattr(model, "predict", None))


def _is_onnx_session(model: Any) -> bool:
    return callable(getattr(model, "run", None)) and callable(getattr(model, "get_inputs", None))


@dataclass
class CallableModel:
    """Calls a function for each row. A prediction of several columns is a tuple."""

    path: str
    width: int

    def open(self, function_context: Any) -> None:
        """Import the function."""
        self._function = import_object(self.path)

    def eval(self, *features: Any) -> list[Any]:
        """Return the prediction of a row."""
        return [_as_row(self._function(*features), self.width)]


@dataclass
class AsyncCallableModel(CallableModel):
    """Awaits a coroutine function for each row."""

    async def eval(self, *features: Any) -> list[Any]:  # type: ignore[override]
        """Return the prediction of a row."""
        return [_as_row(await self._function(*features), self.width)]


@dataclass
class PredictorModel:
    """Calls `predict`, or another method of that form, with the features of all rows of a batch.

    One text column is passed as a list of texts, anything else as an array with a row for each row."""

    path: str
    method: str
    is_text: bool
    width: int

    def open(self, function_context: Any) -> None:
        """Import the model."""
        self._predict = getattr(import_object(self.path), self.method)

    def predict_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the prediction of each row."""
        features = [row[0] for row in rows] if self.is_text else np.array(rows)
        return [_as_row(value, self.width) for value in _to_list(self._predict(features))]


@dataclass
class OnnxModel:
    """Runs an ONNX session: its first outputs are the output columns, in their order.

    A session with one input gets an array of all features; otherwise each input gets a column."""

    path: str
    width: int

    def open(self, function_context: Any) -> None:
        """Import the session."""
        self._session = import_object(self.path)

    def predict_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the prediction of each row."""
        inputs = self._session.get_inputs()
        types = [_ONNX_TYPES.get(node.type, np.object_) for node in inputs]
        if len(inputs) == 1:
            feed: dict[str, Any] = {inputs[0].name: np.array(rows, types[0])}
        else:
            columns = zip(*rows, strict=True)
            feed = {
                node.name: np.array(column, data_type).reshape(-1, 1)
                for node, data_type, column in zip(inputs, types, columns, strict=True)
            }
        outputs = [_to_list(output) for output in self._session.run(None, feed)[: self.width]]
        return list(zip(*([_unwrap(value) for value in output] for output in outputs), strict=True))


def _to_list(values: Any) -> list[Any]:
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _unwrap(value: Any) -> Any:
    """Return the only element of a list: an ONNX output of shape (n, 1) has one for each row."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _as_row(value: Any, width: int) -> tuple[Any, ...]:
    value = value.tolist() if hasattr(value, "tolist") else value
    return (value,) if width == 1 else tuple(value)


def _create(context: ModelContext) -> PredictFunction:
    context.check(("object", "method"))
    path, method, width = context.required("object"), context.text("method"), len(context.model.output)
    if not context.model.input or not width:
        message = "it has no input or no output columns"
        raise context.fail(message, "write INPUT (...) OUTPUT (...) in CREATE MODEL")
    try:
        model = import_object(path)
    except NotAModel as problem:
        raise context.fail(problem.message, problem.hint) from None
    if method is not None and not callable(getattr(model, method, None)):
        message = f"'{path}' has no method '{method}'"
        raise context.fail(message)
    if _has_predict(model, method):
        types = [column.type for column in context.model.input]
        is_text = len(types) == 1 and isinstance(types[0], t.CharType | t.VarCharType)
        return PredictFunction(PredictorModel(path, method or "predict", is_text, width), takes_batches=True)
    if _is_onnx_session(model):
        return PredictFunction(OnnxModel(path, width), takes_batches=True)
    if not callable(model):
        refusal = NotAModel(path, f"it is a {type(model).__name__}")
        raise context.fail(refusal.message, refusal.hint)
    if inspect.iscoroutinefunction(model) or inspect.iscoroutinefunction(type(model).__call__):
        return PredictFunction(AsyncCallableModel(path, width), asynchronous=True)
    return PredictFunction(CallableModel(path, width))


PROVIDER = ModelProvider("python", _create)
