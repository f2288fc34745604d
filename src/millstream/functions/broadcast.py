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
    """What both sides may ask."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Event time of the record, or of the timer that fires; None where the stream has none."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Processing time, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The watermark the operator has seen."""


class BroadcastSideContext(BroadcastBaseContext):
    """What the broadcast side may ask: it can write."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """The broadcast state of that descriptor."""


class OtherSideContext(BroadcastBaseContext):
    """What the other side may ask: it can only read."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """The broadcast state of that descriptor, for reading."""


class KeyedOtherSideContext(OtherSideContext):
    """What the other side may ask when it is keyed."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Reads time and sets timers of the current key."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Key of the record, or of the timer that fires."""


class KeyedOtherSideTimerContext(KeyedOtherSideContext):
    """What a keyed function may ask while a timer fires."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Whether event time or processing time reached the timer."""


class BaseBroadcastProcessFunction(Function):
    """Common part of the two broadcast functions."""

    BaseContext: TypeAlias = BroadcastBaseContext
    Context: TypeAlias = BroadcastSideContext
    ReadOnlyContext: TypeAlias = OtherSideContext


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """A function over a stream without keys and a broadcast stream."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """The records that follow from one of the stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """The records that follow from one of the broadcast stream; called in every subtask."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """A function over a keyed stream and a broadcast stream."""

    ReadOnlyContext: TypeAlias = KeyedOtherSideContext
    OnTimerContext: TypeAlias = KeyedOtherSideTimerContext

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """The records that follow from one of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """The records that follow from one of the broadcast stream; called in every subtask."""

    def on_timer(
        self,
        timestamp: int,
        ctx: KeyedBroadcastProcessFunction.OnTimerContext,
    ) -> Iterable[OUT] | None:
        """The records that follow from a timer of this key that fires."""
        return None
