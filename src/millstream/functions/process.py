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
    """The context of a call of `process_element`; it is valid during the call only."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the timer service, which reads the time and registers timers."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the timestamp of the record, or of the timer that fires; None if records have no timestamps."""


class KeyedElementContext(ElementContext, Generic[K]):
    """The context of a call on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> K:
        """Return the key of the record, or of the timer that fires."""


class KeyedTimerContext(KeyedElementContext[K]):
    """The context of a call of `on_timer`."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return whether the timer is an event-time or a processing-time timer."""


class ProcessFunction(Function, Generic[IN, OUT]):
    """A function that emits any number of records for each record, and can read the time."""

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element(self, value: IN, ctx: ProcessFunction.Context) -> Iterable[OUT] | None:
        """Process one record, and return or yield results."""


class KeyedProcessFunction(Function, Generic[K, IN, OUT]):
    """A process function with keyed state and timers."""

    Context: TypeAlias = KeyedElementContext
    OnTimerContext: TypeAlias = KeyedTimerContext

    @abstractmethod
    def process_element(self, value: IN, ctx: KeyedProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """Process one record, and return or yield results."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[K]) -> Iterable[OUT] | None:
        """Process a timer of the current key that fires, and return or yield results."""
        return None


class CoProcessFunction(Function, Generic[IN, IN2, OUT]):
    """A process function over two connected streams."""

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element1(self, value: IN, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the first stream, and return or yield results."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the second stream, and return or yield results."""


class KeyedCoProcessFunction(Function, Generic[K, IN, IN2, OUT]):
    """A process function over two connected keyed streams; equal keys share state and timers."""

    Context: TypeAlias = KeyedElementContext
    OnTimerContext: TypeAlias = KeyedTimerContext

    @abstractmethod
    def process_element1(self, value: IN, ctx: KeyedCoProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """Process a record of the first stream, and return or yield results."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: KeyedCoProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """Process a record of the second stream, and return or yield results."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[K]) -> Iterable[OUT] | None:
        """Process a timer of the current key that fires, and return or yield results."""
        return None
