"""Process functions: records with their context, timers, and state of the current key.

Promises: PyFlink's classes; a result is a record, or a pair (OutputTag, record) for a side output.
Does not know: how timers are kept or state is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeAlias

from millstream.event_time.timers import TimeDomain, TimerService
from millstream.functions.base import Function
from millstream.functions.type_variables import IN, IN2, OUT, K


class ElementContext(ABC):
    """The context of a call of `process_element`; it is valid during the call only.

    Example:
        >>> class WithTime(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value, ctx.timestamp(), ctx.timer_service().current_watermark()

    """

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the timer service, which reads the time and registers timers."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the timestamp of the record, or of the timer that fires; None if records have no timestamps."""


class KeyedElementContext(ElementContext, Generic[K]):
    """The context of a call on a keyed stream.

    Example:
        >>> class WithKey(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield ctx.get_current_key(), value

    """

    @abstractmethod
    def get_current_key(self) -> K:
        """Return the key of the record, or of the timer that fires."""


class KeyedTimerContext(KeyedElementContext[K]):
    """The context of a call of `on_timer`.

    Example:
        >>> class Idle(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         timers = ctx.timer_service()
        ...         timers.register_processing_time_timer(timers.current_processing_time() + 1_000)
        ...     def on_timer(self, timestamp, ctx):
        ...         yield ctx.get_current_key(), ctx.time_domain()

    """

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return whether the timer is an event-time or a processing-time timer."""


class ProcessFunction(Function, Generic[IN, OUT]):
    """A function that emits any number of records for each record, and can read the time.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream import OutputTag
        >>> from millstream.testing import harness_for
        >>> NEGATIVE = OutputTag("negative", Types.INT())
        >>> class Split(ProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield (NEGATIVE, value) if value < 0 else value
        >>> with harness_for(Split(), side_outputs=[NEGATIVE]) as harness:
        ...     harness.process_all([1, -2])
        ...     harness.values(), [record.value for record in harness.side_output(NEGATIVE)]
        ([1], [-2])

    """

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element(self, value: IN, ctx: ProcessFunction.Context) -> Iterable[OUT] | None:
        """Process one record, and return or yield results.

        Args:
            value: The record.
            ctx: The timestamp of the record, times and side outputs.

        """


class KeyedProcessFunction(Function, Generic[K, IN, OUT]):
    """A process function with keyed state and timers.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.testing import harness_for
        >>> class Total(KeyedProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        ...     def process_element(self, value, ctx):
        ...         self.total.update((self.total.value() or 0) + value[1])
        ...         yield ctx.get_current_key(), self.total.value()
        >>> with harness_for(Total(), key=lambda pair: pair[0]) as harness:
        ...     harness.process_all([("a", 1), ("b", 5), ("a", 2)])
        ...     harness.values()
        [('a', 1), ('b', 5), ('a', 3)]

    """

    Context: TypeAlias = KeyedElementContext
    OnTimerContext: TypeAlias = KeyedTimerContext

    @abstractmethod
    def process_element(self, value: IN, ctx: KeyedProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """Process one record, and return or yield results.

        Args:
            value: The record.
            ctx: The key, the timestamp of the record, timers and side outputs.

        """

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[K]) -> Iterable[OUT] | None:
        """Process a timer of the current key that fires, and return or yield results.

        Args:
            timestamp: The time of the timer.
            ctx: The key, the time domain, timers and side outputs.

        """
        return None


class CoProcessFunction(Function, Generic[IN, IN2, OUT]):
    """A process function over two connected streams.

    Example:
        >>> from millstream.testing import harness_for
        >>> class Both(CoProcessFunction):
        ...     def process_element1(self, value, ctx):
        ...         yield "first", value
        ...     def process_element2(self, value, ctx):
        ...         yield "second", value
        >>> with harness_for(Both()) as harness:
        ...     harness.process(1, side=0)
        ...     harness.process(2, side=1)
        ...     harness.values()
        [('first', 1), ('second', 2)]

    """

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element1(self, value: IN, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the first stream, and return or yield results.

        Args:
            value: The record.
            ctx: The timestamp of the record, times and side outputs.

        """

    @abstractmethod
    def process_element2(self, value: IN2, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the second stream, and return or yield results.

        Args:
            value: The record.
            ctx: The timestamp of the record, times and side outputs.

        """


class KeyedCoProcessFunction(Function, Generic[K, IN, IN2, OUT]):
    """A process function over two connected keyed streams; equal keys share state and timers.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import ValueStateDescriptor
        >>> from millstream.testing import harness_for
        >>> class WithAddress(KeyedCoProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.address = runtime_context.get_state(ValueStateDescriptor("address", Types.STRING()))
        ...     def process_element1(self, value, ctx):
        ...         yield value[0], self.address.value()
        ...     def process_element2(self, value, ctx):
        ...         self.address.update(value[1])
        >>> first_field = lambda pair: pair[0]
        >>> with harness_for(WithAddress(), key=(first_field, first_field)) as harness:
        ...     harness.process(("ann", "Bern"), side=1)
        ...     harness.process(("ann", 1), side=0)
        ...     harness.values()
        [('ann', 'Bern')]

    """

    Context: TypeAlias = KeyedElementContext
    OnTimerContext: TypeAlias = KeyedTimerContext

    @abstractmethod
    def process_element1(self, value: IN, ctx: KeyedCoProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """Process a record of the first stream, and return or yield results.

        Args:
            value: The record.
            ctx: The key, the timestamp of the record, timers and side outputs.

        """

    @abstractmethod
    def process_element2(self, value: IN2, ctx: KeyedCoProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """Process a record of the second stream, and return or yield results.

        Args:
            value: The record.
            ctx: The key, the timestamp of the record, timers and side outputs.

        """

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[K]) -> Iterable[OUT] | None:
        """Process a timer of the current key that fires, and return or yield results.

        Args:
            timestamp: The time of the timer.
            ctx: The key, the time domain, timers and side outputs.

        """
        return None
