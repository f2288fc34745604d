"""The broadcast state pattern: a stream of records, and a broadcast stream that every subtask receives.

Promises: only the broadcast side can change broadcast state, in the same way in every subtask; the other side reads it.
Does not know: how records reach every subtask; the broadcast partitioner does that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.errors import UserError
from millstream.functions import BroadcastProcessFunction, KeyedBroadcastProcessFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.context import Call, KeyedStates, TimeOnly
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.operators.map import FunctionOperator
from millstream.runtime.operators.process import TimedOperator
from millstream.state.views import ReadOnlyBroadcastView, create_broadcast_view
from millstream.state_descriptors.descriptors import MapStateDescriptor, StateDescriptor


class UnknownBroadcastState(UserError):
    """A function uses broadcast state whose descriptor was not passed to `broadcast(...)`."""

    def __init__(self, name: str, declared: list[str]) -> None:
        super().__init__(
            f"broadcast state '{name}' is not one of {declared}", hint="pass its descriptor to broadcast(...), too"
        )


class NoKeyOnBroadcastSide(UserError):
    """The broadcast side uses keyed state or a timer, which need a key."""

    hint = "use apply_to_keyed_state to reach the state of every key"

    def __init__(self) -> None:
        super().__init__("a record of the broadcast side has no key, so it has no keyed state and no timers")


class _NoKey:
    """Stands for the key of a record of the broadcast side, which has none; any use of it in keyed state is refused."""

    def __hash__(self) -> int:
        raise NoKeyOnBroadcastSide


_NO_KEY = _NoKey()


@dataclass(frozen=True)
class BroadcastSpec(OperatorSpec):
    """A broadcast process function; with `key`, its first input is keyed."""

    function: BroadcastProcessFunction[Any, Any, Any] | KeyedBroadcastProcessFunction[Any, Any, Any, Any]
    descriptors: tuple[MapStateDescriptor, ...]
    key: KeySelection | None = None

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        if self.key is None:
            return BroadcastOperator(context, self.function, self.descriptors)
        return KeyedBroadcastOperator(context, self.function, self.descriptors, self.key)


class _BroadcastCall(Call):
    """A call context with broadcast state."""

    __slots__ = ("_context", "_keyed_states", "_views", "writing")

    def __init__(self, context: OperatorContext, timers: Any, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        super().__init__(context.scope, timers)
        self._context = context
        self._views = {descriptor.name: create_broadcast_view(descriptor, context.state) for descriptor in descriptors}
        self._keyed_states = KeyedStates(context, context.scope)
        self.writing = False

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> Any:
        """Return the broadcast state of a descriptor; only the broadcast side can change it."""
        view = self._views.get(state_descriptor.name)
        if view is None:
            raise UnknownBroadcastState(state_descriptor.name, list(self._views))
        return view if self.writing else ReadOnlyBroadcastView(view)

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Callable[[Any, Any], None]) -> None:
        """Call `function(key, state)` for every key of this subtask that has this state."""
        view = self._keyed_states._view(state_descriptor)
        table = self._context.state.tables[f"user/{state_descriptor.name}"]
        for key, _ in list(table.scan(None)):
            self._scope.key = key
            function(key, view)
        self._scope.key = _NO_KEY


class BroadcastOperator(FunctionOperator):
    """Broadcast state for a stream without keys."""

    def __init__(self, context: OperatorContext, function: Any, descriptors: tuple[MapStateDescriptor, ...]) -> None:
        super().__init__(context, function, keyed=False)
        self._call = _BroadcastCall(context, TimeOnly(context), descriptors)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Process records of one of the two sides."""
        function: Any = self.function
        method = function.process_element if side == 0 else function.process_broadcast_element
        self._call.writing = side == 1
        rowwise.process_rows(self.context, method, batch, self._call)


class KeyedBroadcastOperator(TimedOperator):
    """Broadcast state for a keyed stream, with timers."""

    def __init__(
        self, context: OperatorContext, function: Any, descriptors: tuple[MapStateDescriptor, ...], key: KeySelection
    ) -> None:
        super().__init__(context, function)
        self._key = key
        self.call: _BroadcastCall = _BroadcastCall(context, self.timers, descriptors)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Process keyed records, or records of the broadcast side."""
        function: Any = self.function
        if side == 1:
            self.context.scope.key = _NO_KEY
            self.call.writing = True
            try:
                rowwise.process_rows(self.context, function.process_broadcast_element, batch, self.call)
            finally:
                self.call.writing = False
            return
        keys = self._key.keys(batch, self.context.name)
        rowwise.process_keyed_rows(self.context, function.process_element, batch, keys, self.call)
