"""Functions over the content of a window, keyed or not.

Promises: PyFlink's classes; a function clears the state of its windows itself.
Does not know: when a window fires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeAlias, TypeVar

from millstream.functions.base import Function, KeyedStateStore

IN = TypeVar("IN")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")
W = TypeVar("W")


class AllWindowContext(ABC, Generic[W]):
    """The context of a function of a window without keys."""

    @abstractmethod
    def window(self) -> W:
        """Return the window."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the store of state of this key and window; the function clears it in `clear`."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the store of state of this key, which its windows share."""


class WindowContext(AllWindowContext[W]):
    """The context of a function of a keyed window, with access to the time."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark of the operator."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream, with access to time and state."""

    Context: TypeAlias = WindowContext

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear state of the window; called when the window is removed."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys, with access to state."""

    Context: TypeAlias = AllWindowContext

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear state of the window; called when the window is removed."""


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """Emits the content of a window unchanged."""

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Yield the content of the window."""
        yield from inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """Emits the content of a window unchanged."""

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Yield the content of the window."""
        yield from inputs
