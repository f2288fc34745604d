"""Functions over a stream and a broadcast stream, which shares its state with every subtask.

Promises: only the broadcast side can write broadcast state, so all subtasks hold the same.
Does not know: how the state reaches each subtask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from millstream.event_time.timers import TimeDomain, TimerService
from millstream.functions.base import Function

if TYPE_CHECKING:  # as in base.py: state descriptors import functions
    from millstream.state_descriptors.descriptors import BroadcastState, MapStateDescriptor, ReadOnlyBroadcastState

KEY = TypeVar("KEY")
IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")


class BroadcastBaseContext(ABC):
    """The context of both sides."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the timestamp of the record, or of the timer that fires; None if records have no timestamps."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the processing time in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the current watermark of the operator."""


class BroadcastSideContext(BroadcastBaseContext):
    """The context of the broadcast side, which can write broadcast state."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return the broadcast state of a descriptor."""


class OtherSideContext(BroadcastBaseContext):
    """The context of the other side, which can only read broadcast state."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Return the broadcast state of a descriptor, read-only."""


class KeyedOtherSideContext(OtherSideContext):
    """The context of the other side if it is keyed."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the timer service, which reads the time and registers timers of the current key."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the record, or of the timer that fires."""


class KeyedOtherSideTimerContext(KeyedOtherSideContext):
    """The context of a call of `on_timer`."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return whether the timer is an event-time or a processing-time timer."""


class BaseBroadcastProcessFunction(Function):
    """The base class of the two broadcast functions."""

    BaseContext: TypeAlias = BroadcastBaseContext
    Context: TypeAlias = BroadcastSideContext
    ReadOnlyContext: TypeAlias = OtherSideContext


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """A function over a stream without keys and a broadcast stream."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Process a record of the stream, and return or yield results."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the broadcast stream, in every subtask, and return or yield results."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """A function over a keyed stream and a broadcast stream."""

    ReadOnlyContext: TypeAlias = KeyedOtherSideContext
    OnTimerContext: TypeAlias = KeyedOtherSideTimerContext

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Process a record of the keyed stream, and return or yield results."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the broadcast stream, in every subtask, and return or yield results."""

    def on_timer(
        self,
        timestamp: int,
        ctx: KeyedBroadcastProcessFunction.OnTimerContext,
    ) -> Iterable[OUT] | None:
        """Process a timer of the current key that fires, and return or yield results."""
        return None
