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
    """The context of a function of a window without keys.

    Example:
        >>> class Ends(ProcessAllWindowFunction):
        ...     def process(self, context, elements):
        ...         yield context.window().end, len(list(elements))

    """

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
    """The context of a function of a keyed window, with access to the time.

    Example:
        >>> class Ends(ProcessWindowFunction):
        ...     def process(self, key, context, elements):
        ...         yield key, context.window().end, context.current_watermark()

    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark of the operator."""


class WindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream.

    Example:
        >>> class CountOfWindow(WindowFunction):
        ...     def apply(self, key, window, inputs):
        ...         yield key, window.end, len(list(inputs))

    """

    @abstractmethod
    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results.

        Args:
            key: The key.
            window: The window.
            inputs: The records of the key and the window.

        """


class AllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys.

    Example:
        >>> class CountOfWindow(AllWindowFunction):
        ...     def apply(self, window, inputs):
        ...         yield window.end, len(list(inputs))

    """

    @abstractmethod
    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results.

        Args:
            window: The window.
            inputs: Its records.

        """


class ProcessWindowFunction(Function, Generic[IN, OUT, KEY, W]):
    """Evaluates a window of a keyed stream, with access to time and state.

    Example:
        >>> from millstream.common import Time
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.datastream.window import TumblingEventTimeWindows
        >>> class CountOfWindow(ProcessWindowFunction):
        ...     def process(self, key, context, elements):
        ...         yield key, context.window().start, len(list(elements))
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> clicks = env.from_collection([("ann", 1)]).key_by(lambda click: click[0])
        >>> counts = clicks.window(TumblingEventTimeWindows.of(Time.minutes(1))).process(CountOfWindow())

    """

    Context: TypeAlias = WindowContext

    @abstractmethod
    def process(self, key: KEY, context: ProcessWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results.

        Args:
            key: The key.
            context: The window, its state, times and side outputs.
            elements: The records of the key and the window.

        """

    def clear(self, context: ProcessWindowFunction.Context[W]) -> None:
        """Clear state of the window; called when the window is removed.

        Args:
            context: The window and its state.

        """


class ProcessAllWindowFunction(Function, Generic[IN, OUT, W]):
    """Evaluates a window of a stream without keys, with access to state.

    Example:
        >>> class Latest(ProcessAllWindowFunction):
        ...     def process(self, context, elements):
        ...         yield list(elements)[-1]

    """

    Context: TypeAlias = AllWindowContext

    @abstractmethod
    def process(self, context: ProcessAllWindowFunction.Context[W], elements: Iterable[IN]) -> Iterable[OUT]:
        """Evaluate a window, and return or yield results.

        Args:
            context: The window, its state, times and side outputs.
            elements: The records of the window.

        """

    def clear(self, context: ProcessAllWindowFunction.Context[W]) -> None:
        """Clear state of the window; called when the window is removed.

        Args:
            context: The window and its state.

        """


class PassThroughWindowFunction(WindowFunction[IN, IN, KEY, W]):
    """Emits the content of a window unchanged.

    Example:
        >>> list(PassThroughWindowFunction().apply("key", None, [1, 2]))
        [1, 2]

    """

    def apply(self, key: KEY, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Yield the content of the window."""
        yield from inputs


class PassThroughAllWindowFunction(AllWindowFunction[IN, IN, W]):
    """Emits the content of a window unchanged.

    Example:
        >>> list(PassThroughAllWindowFunction().apply(None, [1, 2]))
        [1, 2]

    """

    def apply(self, window: W, inputs: Iterable[IN]) -> Iterable[IN]:
        """Yield the content of the window."""
        yield from inputs
