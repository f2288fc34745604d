"""Copies of operator specs and functions: each subtask gets its own copy, and a restarted subtask gets a new one.

Promises: a copy shares nothing that user code can change through a function: neither fields of objects nor closure
variables and default values of functions. It shares what belongs to the process: modules, classes, functions without
closure variables, globals, and Arrow data, which is immutable. A class with `__deepcopy__` is copied by that method.
Does not know: what is copied."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, Generic, TypeVar

import cloudpickle
import pyarrow as pa

T = TypeVar("T")

_SHARED = (type, ModuleType, BuiltinFunctionType, CodeType, pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)


class Original(Generic[T]):
    """A value kept as a pickle, from which copies are created at little cost."""

    def __init__(self, value: T) -> None:
        data = io.BytesIO()
        pickler = _Pickler(data, 5)
        pickler.dump(value)
        self._data, self._shared = data.getvalue(), pickler.shared

    def copy(self) -> T:
        """Return a new copy of the value."""
        value: T = _Unpickler(io.BytesIO(self._data), self._shared).load()
        return value


class _Globals:
    """The global variables of a function, which copies of the function share."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.shared: list[Any] = []
        self._shared_index: dict[int, int] = {}  # index in `shared`, by the value's id

    def persistent_id(self, value: Any) -> int | None:
        """Return the index in `shared` of a value that is not pickled; None for a value that is."""
        if isinstance(value, _Globals):
            value = value.variables
        elif not (
            isinstance(value, _SHARED)
            or (isinstance(value, FunctionType) and _is_shared(value))
            or _copies_itself(value)
        ):
            return None
        if id(value) not in self._shared_index:
            self._shared_index[id(value)] = len(self.shared)
            self.shared.append(value)
        return self._shared_index[id(value)]

    def reducer_override(self, value: Any) -> Any:
        """Copy functions with their closure variables; cloudpickle copies other values."""
        if isinstance(value, CellType):
            return CellType, ()  # its content is set with the state of the function
        if not isinstance(value, FunctionType):
            return super().reducer_override(value)
        cells = value.__closure__ or ()
        arguments = value.__code__, _Globals(value.__globals__), value.__name__, None, cells or None
        contents = [(cell, cell.cell_contents) for cell in cells if not _is_empty(cell)]
        state = value.__defaults__, value.__kwdefaults__, value.__qualname__, value.__module__, vars(value), contents
        return FunctionType, arguments, state, None, None, _complete


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(file)
        self._shared, self._memo = shared, dict[int, Any]()

    def persistent_load(self, pid: Any) -> Any:
        """Return a value that was not pickled."""
        value = self._shared[pid]
        return copy.deepcopy(value, self._memo) if _copies_itself(value) else value


def _copies_itself(value: Any) -> bool:
    return hasattr(type(value), "__deepcopy__") and not isinstance(value, _SHARED)


def _is_shared(function: FunctionType) -> bool:
    """Whether a function can be imported by its name, or has no closure, default values or attributes to change."""
    imported: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        imported = getattr(imported, name, None)
    changeable = (function.__closure__, function.__defaults__, function.__kwdefaults__, vars(function))
    return imported is function or not any(changeable)


def _is_empty(cell: CellType) -> bool:
    try:
        return cell.cell_contents is cell  # always false; an empty cell raises
    except ValueError:
        return True


def _complete(function: FunctionType, state: tuple[Any, ...]) -> None:
    function.__defaults__, function.__kwdefaults__, function.__qualname__, function.__module__ = state[:4]
    vars(function).update(state[4])
    for cell, content in state[5]:
        cell.cell_contents = content
