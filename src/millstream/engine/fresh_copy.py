"""Copies of a program's parts, as each subtask needs its own and as a restarted function begins.

Promises: a copy shares nothing that user code can change through a function: neither fields of objects nor variables
and default values of nested functions. It does share what belongs to the process: modules, classes, functions without
variables of their own, globals, and Arrow data, which nobody changes. A class with `__deepcopy__` decides for itself.
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
    """A value that nobody uses, kept as a pickle: copies cost little."""

    def __init__(self, value: T) -> None:
        data = io.BytesIO()
        pickler = _Pickler(data, 5)
        pickler.dump(value)
        self._data, self._shared = data.getvalue(), pickler.shared

    def copy(self) -> T:
        """A new copy of the value."""
        copied: T = _Unpickler(io.BytesIO(self._data), self._shared).load()
        return copied


class _Globals:
    """The global variables of a function, which copies of the function share."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.shared: list[Any] = []
        self._places: dict[int, int] = {}  # by identity, in the list

    def persistent_id(self, value: Any) -> int | None:
        """The place of a value that is not pickled in the list of those that copies are given as they are."""
        if isinstance(value, _Globals):
            value = value.variables
        elif not (
            isinstance(value, _SHARED)
            or (isinstance(value, FunctionType) and _is_shared(value))
            or _copies_itself(value)
        ):
            return None
        if id(value) not in self._places:
            self._places[id(value)] = len(self.shared)
            self.shared.append(value)
        return self._places[id(value)]

    def reducer_override(self, value: Any) -> Any:
        """Functions and their variables are copied here, other values as cloudpickle does it."""
        if isinstance(value, CellType):
            return CellType, ()  # its content follows with a function that has it
        if not isinstance(value, FunctionType):
            return super().reducer_override(value)
        cells = value.__closure__ or ()
        made = value.__code__, _Globals(value.__globals__), value.__name__, None, cells or None
        contents = [(cell, cell.cell_contents) for cell in cells if not _is_empty(cell)]
        state = value.__defaults__, value.__kwdefaults__, value.__qualname__, value.__module__, vars(value), contents
        return FunctionType, made, state, None, None, _complete


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: list[Any]) -> None:
        super().__init__(file)
        self._shared, self._memo = shared, dict[int, Any]()

    def persistent_load(self, pid: Any) -> Any:
        """What was not pickled."""
        value = self._shared[pid]
        return copy.deepcopy(value, self._memo) if _copies_itself(value) else value


def _copies_itself(value: Any) -> bool:
    return hasattr(type(value), "__deepcopy__") and not isinstance(value, _SHARED)


def _is_shared(function: FunctionType) -> bool:
    """Whether a function is found by its name, or has nothing of its own that could change."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    own = (function.__closure__, function.__defaults__, function.__kwdefaults__, vars(function))
    return found is function or not any(own)


def _is_empty(cell: CellType) -> bool:
    try:
        return cell.cell_contents is cell  # never so
    except ValueError:
        return True


def _complete(function: FunctionType, state: tuple[Any, ...]) -> None:
    function.__defaults__, function.__kwdefaults__, function.__qualname__, function.__module__ = state[:4]
    vars(function).update(state[4])
    for cell, content in state[5]:
        cell.cell_contents = content
