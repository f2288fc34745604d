"""Functions over the content of a window, keyed or not.

Promises: PyFlink's classes; state of a window is the function's to clear.
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
    """What a function may ask about the window it is called for."""

    @abstractmethod
    def window(self) -> W:
        """The window."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """State of this key and this window; clear it in the function's `clear`."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """State of this key, shared by its windows."""


class WindowContext(AllWindowContext[W]):
    """An `AllWindowContext` that also tells the time."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Processing time, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The watermark the operator has seen."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream."""

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """The records that the window amounts to."""


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys."""

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """The records that the window amounts to."""


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream, with access to time and state."""

    Context: TypeAlias = WindowContext

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """The records that the window amounts to."""

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear state of the window; called when the window is dropped for good."""


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys, with access to state."""

    Context: TypeAlias = AllWindowContext

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """The records that the window amounts to."""

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear state of the window; called when the window is dropped for good."""


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """Emits the content of a window as it is."""

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """The inputs."""
        yield from inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """Emits the content of a window as it is."""

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """The inputs."""
        yield from inputs
