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
    """The context of both sides.

    Example:
        >>> class WithTime(BroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield value, ctx.timestamp(), ctx.current_watermark()
        ...     def process_broadcast_element(self, value, ctx):
        ...         pass

    """

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
    """The context of the broadcast side, which can write broadcast state.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import MapStateDescriptor
        >>> LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
        >>> class Limits(BroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         pass
        ...     def process_broadcast_element(self, value, ctx):
        ...         ctx.get_broadcast_state(LIMITS).put(value["name"], value["limit"])

    """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return the broadcast state of a descriptor.

        Args:
            state_descriptor: A descriptor that was given to `DataStream.broadcast`.

        """


class OtherSideContext(BroadcastBaseContext):
    """The context of the other side, which can only read broadcast state.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import MapStateDescriptor
        >>> LIMITS = MapStateDescriptor("limits", Types.STRING(), Types.INT())
        >>> class Limited(BroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         limit = ctx.get_broadcast_state(LIMITS).get(value["name"])
        ...         if limit is None or value["amount"] <= limit:
        ...             yield value
        ...     def process_broadcast_element(self, value, ctx):
        ...         pass

    """

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
        """Return the broadcast state of a descriptor, read-only.

        Args:
            state_descriptor: A descriptor that was given to `DataStream.broadcast`.

        """


class KeyedOtherSideContext(OtherSideContext):
    """The context of the other side if it is keyed.

    Example:
        >>> class WithKey(KeyedBroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         yield ctx.get_current_key(), value
        ...     def process_broadcast_element(self, value, ctx):
        ...         pass

    """

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the timer service, which reads the time and registers timers of the current key."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the record, or of the timer that fires."""


class KeyedOtherSideTimerContext(KeyedOtherSideContext):
    """The context of a call of `on_timer`.

    Example:
        >>> class WithTimer(KeyedBroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 1_000)
        ...     def process_broadcast_element(self, value, ctx):
        ...         pass
        ...     def on_timer(self, timestamp, ctx):
        ...         yield ctx.get_current_key(), ctx.time_domain()

    """

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return whether the timer is an event-time or a processing-time timer."""


class BaseBroadcastProcessFunction(Function):
    """The base class of the two broadcast functions.

    Example:
        >>> issubclass(BroadcastProcessFunction, BaseBroadcastProcessFunction)
        True

    """

    BaseContext: TypeAlias = BroadcastBaseContext
    Context: TypeAlias = BroadcastSideContext
    ReadOnlyContext: TypeAlias = OtherSideContext


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """A function over a stream without keys and a broadcast stream.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.datastream.state import MapStateDescriptor
        >>> RATES = MapStateDescriptor("rates", Types.STRING(), Types.DOUBLE())
        >>> class Convert(BroadcastProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         rate = ctx.get_broadcast_state(RATES).get(value["currency"])
        ...         if rate is not None:
        ...             yield value["amount"] * rate
        ...     def process_broadcast_element(self, value, ctx):
        ...         ctx.get_broadcast_state(RATES).put(value["currency"], value["rate"])
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> rates = env.from_collection([{"currency": "EUR", "rate": 1.1}]).broadcast(RATES)
        >>> payments = env.from_collection([{"currency": "EUR", "amount": 100.0}])
        >>> amounts = payments.connect(rates).process(Convert())

    """

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Process a record of the stream, and return or yield results.

        Args:
            value: The record.
            ctx: Times, side outputs, and broadcast state to read.

        """

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the broadcast stream, in every subtask, and return or yield results.

        Args:
            value: The record.
            ctx: Times, side outputs, and broadcast state to write.

        """


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """A function over a keyed stream and a broadcast stream.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.state import MapStateDescriptor, ValueStateDescriptor
        >>> RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
        >>> class Alert(KeyedBroadcastProcessFunction):
        ...     def open(self, runtime_context):
        ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        ...     def process_element(self, value, ctx):
        ...         self.total.update((self.total.value() or 0) + value["amount"])
        ...         limit = ctx.get_broadcast_state(RULES).get("limit")
        ...         if limit is not None and self.total.value() > limit:
        ...             yield ctx.get_current_key()
        ...     def process_broadcast_element(self, value, ctx):
        ...         ctx.get_broadcast_state(RULES).put("limit", value)

    """

    ReadOnlyContext: TypeAlias = KeyedOtherSideContext
    OnTimerContext: TypeAlias = KeyedOtherSideTimerContext

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Iterable[OUT] | None:
        """Process a record of the keyed stream, and return or yield results.

        Args:
            value: The record.
            ctx: The key, timers, side outputs, and broadcast state to read.

        """

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Iterable[OUT] | None:
        """Process a record of the broadcast stream, in every subtask, and return or yield results.

        Args:
            value: The record.
            ctx: Times, side outputs, broadcast state to write, and `apply_to_keyed_state`.

        """

    def on_timer(
        self,
        timestamp: int,
        ctx: KeyedBroadcastProcessFunction.OnTimerContext,
    ) -> Iterable[OUT] | None:
        """Process a timer of the current key that fires, and return or yield results.

        Args:
            timestamp: The time of the timer.
            ctx: The key, the time domain, timers, side outputs, and broadcast state to read.

        """
        return None
