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
    """What a process function may ask while it handles one record; valid during that call only."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Reads time and sets timers."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the record, or of the timer that fires; None where the stream has none."""


class KeyedElementContext(ElementContext, Generic[K]):
    """An `ElementContext` on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> K:
        """Key of the record, or of the timer that fires."""


class KeyedTimerContext(KeyedElementContext[K]):
    """What a process function may ask while a timer fires."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Whether event time or processing time reached the timer."""


class ProcessFunction(Function, Generic[IN, OUT]):
    """Any number of records out for each record in, with access to time."""

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element(self, value: IN, ctx: ProcessFunction.Context) -> Iterable[OUT] | None:
        """The records that follow from `value`."""


class KeyedProcessFunction(Function, Generic[K, IN, OUT]):
    """A process function with state and timers per key."""

    Context: TypeAlias = KeyedElementContext
    OnTimerContext: TypeAlias = KeyedTimerContext

    @abstractmethod
    def process_element(self, value: IN, ctx: KeyedProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """The records that follow from `value`."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[K]) -> Iterable[OUT] | None:
        """The records that follow from a timer of this key that fires."""
        return None


class CoProcessFunction(Function, Generic[IN, IN2, OUT]):
    """A process function over two connected streams."""

    Context: TypeAlias = ElementContext

    @abstractmethod
    def process_element1(self, value: IN, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """The records that follow from one of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: CoProcessFunction.Context) -> Iterable[OUT] | None:
        """The records that follow from one of the second stream."""


class KeyedCoProcessFunction(Function, Generic[K, IN, IN2, OUT]):
    """A process function over two connected keyed streams, whose keys share state and timers."""

    Context: TypeAlias = KeyedElementContext
    OnTimerContext: TypeAlias = KeyedTimerContext

    @abstractmethod
    def process_element1(self, value: IN, ctx: KeyedCoProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """The records that follow from one of the first stream."""

    @abstractmethod
    def process_element2(self, value: IN2, ctx: KeyedCoProcessFunction.Context[K]) -> Iterable[OUT] | None:
        """The records that follow from one of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[K]) -> Iterable[OUT] | None:
        """The records that follow from a timer of this key that fires."""
        return None
