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
from typing import Any, TypeVar

import cloudpickle
import pyarrow as pa

T = TypeVar("T")

_SHARED = (type, ModuleType, BuiltinFunctionType, CodeType, pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)


def fresh_copy(value: T) -> T:
    """A copy of `value`, through pickle."""
    data = io.BytesIO()
    pickler = _Pickler(data, 5)
    pickler.dump(value)
    copied: T = _Unpickler(io.BytesIO(data.getbuffer()), pickler.shared).load()
    return copied


class _Globals:
    """The global variables of a function, which copies of the function share."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.shared: list[Any] = []

    def persistent_id(self, value: Any) -> int | None:
        """The place of what is not pickled among the values that are handed over as they are."""
        if isinstance(value, _Globals):
            self.shared.append(value.variables)
        elif isinstance(value, _SHARED) or (isinstance(value, FunctionType) and _is_shared(value)):
            self.shared.append(value)
        elif hasattr(type(value), "__deepcopy__"):
            self.shared.append(copy.deepcopy(value))
        else:
            return None
        return len(self.shared) - 1

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
        self._shared = shared

    def persistent_load(self, pid: Any) -> Any:
        """What was not pickled."""
        return self._shared[pid]


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
