"""Calls of stateful functions: their context and storage, and the loop over the messages of an address.

Promises: the messages of an address are processed one after the other, in their order; coroutine functions of several
addresses run at once, and what they send has the order of the addresses. A failure names the address and the message.
Does not know: epochs, and which messages are feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from millstream.errors import InvalidArgument, InvalidArgumentType, MillstreamError, UserError
from millstream.functions import AsyncFunction
from millstream.functions.entities.messages import EgressMessage, Message, SdkAddress, TypedValue
from millstream.functions.entities.registry import Context, StatefulFunction, UnknownFunctionType, ValueSpec
from millstream.functions.entities.value_types import BYTES, Type
from millstream.runtime import rowwise
from millstream.runtime.entity_delays import Delays, Record
from millstream.runtime.operator import OperatorContext
from millstream.state.views import Scope, create_view
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.state_descriptors.ttl import StateTtlConfig
from millstream.times import Time

Group = tuple[tuple[str, str], list[Record]]  # a function type and an id, and the messages of this address


class UndeclaredValue(UserError, AttributeError):
    """A function uses a persisted value that it does not declare."""

    __str__ = UserError.__str__

    def __init__(self, typename: str, name: str, declared: list[str]) -> None:
        self.typename = typename
        super().__init__(
            f"function '{typename}' has no persisted value '{name}'; it has {', '.join(declared) or 'none'}",
            hint=f"add ValueSpec('{name}', ...) to the specs of the function",
        )


class UnknownEgress(UserError):
    """A message was sent to an egress that the program does not have."""

    def __init__(self, typename: str, declared: list[str]) -> None:
        super().__init__(
            f"there is no egress '{typename}'",
            hint=f"call with_egress_id; the egresses are {', '.join(declared) or 'none'}",
        )


class CallTimedOut(UserError, TimeoutError):
    """A call of a coroutine function took too long."""

    __str__ = UserError.__str__

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the call has not returned in {seconds:g} s", hint="raise the timeout: with_async(timeout=...)"
        )


class _Delivery:
    """A message with its caller, for error messages."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __repr__(self) -> str:
        id, target, caller, typename, data = self._record
        return f"message to {target}:{id} from {caller or 'an ingress'}: {TypedValue(typename, True, data)!r}"


class Storage:
    """The persisted values of one address. Names of values are lower case, so they never are `ID`."""

    __slots__ = ("ID",)
    ID: str

    def __init__(self, id: str) -> None:
        object.__setattr__(self, "ID", id)


def storage_class(function: StatefulFunction, context: OperatorContext) -> tuple[Any, tuple[Any, ...]]:
    """Return the class of a function's storage, and the views of the values that a call keeps alive."""
    views = {spec.name: _view(function.typename, spec, context) for spec in function.specs}
    names = list(views)

    def refuse(_: Storage, name: str) -> Any:
        raise UndeclaredValue(function.typename, name, names)

    def set_value(self: Storage, name: str, value: Any) -> None:
        if name not in views:
            refuse(self, name)
        object.__setattr__(self, name, value)

    def delete_value(self: Storage, name: str) -> None:
        if name not in views:
            refuse(self, name)
        object.__delattr__(self, name)

    members: dict[str, Any] = {
        "__slots__": (),
        "__getattr__": refuse,
        "__setattr__": set_value,
        "__delattr__": delete_value,
    }
    members |= {spec.name: _persisted(context.scope, views[spec.name], spec) for spec in function.specs}
    return type("Storage", (Storage,), members), tuple(views[s.name] for s in function.specs if s.after_call)


def _view(typename: str, spec: ValueSpec, context: OperatorContext) -> Any:
    descriptor = ValueStateDescriptor(f"{typename}/{spec.name}", spec.type.type_info or BYTES)
    if spec.duration:
        config = StateTtlConfig.new_builder(Time.milliseconds(spec.duration))
        update = StateTtlConfig.UpdateType
        config.set_update_type(update.OnReadAndWrite if spec.after_call else update.OnCreateAndWrite)
        descriptor.enable_time_to_live(config.build())
    return create_view(descriptor, context.state, context.scope)


def _persisted(scope: Scope, view: Any, spec: ValueSpec) -> property:
    """Return the attribute of a persisted value. Custom types are kept as bytes, so that each read is a new object."""
    value_type = spec.type
    serializer = value_type.serializer()

    def get(storage: Storage) -> Any:
        scope.key = storage.ID
        return view.value()

    def get_object(storage: Storage) -> Any:
        data = get(storage)
        try:
            return None if data is None else serializer.deserialize(data)
        except AttributeError as problem:  # Python would take it for a missing attribute of the storage
            msg = f"the persisted value '{spec.name}' of type '{value_type.typename}' cannot be deserialized: {problem}"
            raise RuntimeError(msg) from problem

    def put(storage: Storage, value: Any) -> None:
        if value is None:
            msg = f"the persisted value '{spec.name}' was set to None"
            raise InvalidArgument(msg, hint=f"to delete it: del context.storage.{spec.name}")
        data = serializer.serialize(value) if value_type.type_info is None else value_type.check(value)
        scope.key = storage.ID
        view.update(data)

    def delete(storage: Storage) -> None:
        scope.key = storage.ID
        view.clear()

    return property(get_object if value_type.type_info is None else get, put, delete)


class CallContext(Context):
    """The context of the calls for one address; `caller_address` is set before each call."""

    __slots__ = ("_address", "_caller", "_calls", "_storage", "_typename", "caller_address", "egress", "id", "sent")

    def __init__(self, calls: Calls, typename: str, id: str, storage: Any) -> None:
        self._calls, self._typename, self.id, self._storage = calls, typename, id, storage
        self._caller = f"{typename}:{id}"  # of the messages that are sent
        self._address: SdkAddress | None = None
        self.caller_address = ""
        self.sent: list[Record] = []
        self.egress: list[tuple[str, Any]] = []

    @property
    def address(self) -> SdkAddress:
        """The address of the function that is called."""
        if self._address is None:
            self._address = SdkAddress.of(self._typename, self.id)
        return self._address

    @property
    def caller(self) -> SdkAddress | None:
        """The address of the function that sent the message."""
        typename, _, id = self.caller_address.partition(":")
        return SdkAddress.of(typename, id) if typename else None

    @property
    def storage(self) -> Any:
        """The persisted values of the address."""
        return self._storage

    def send(self, message: Message) -> None:
        """Send a message to a function."""
        self.sent.append(self._calls.to_record(message, self._caller))

    def send_after(self, duration: timedelta, message: Message, cancellation_token: str = "") -> None:
        """Send a message to a function after a delay."""
        if not isinstance(duration, timedelta) or duration < timedelta():
            msg = f"a message was sent after {duration!r}"
            raise InvalidArgument(msg, hint="pass a timedelta that is not negative")
        time = self._calls.context.now + round(duration / timedelta(milliseconds=1))
        record = self._calls.to_record(message, self._caller)
        self._calls.delays.add(self._typename, self.id, time, cancellation_token or "", record)

    def cancel_delayed_message(self, cancellation_token: str) -> None:
        """Cancel the messages that this function sent with a token."""
        if cancellation_token:
            self._calls.delays.cancel(self._typename, self.id, cancellation_token)

    def send_egress(self, message: EgressMessage) -> None:
        """Send a message to an egress."""
        self.egress.append(self._calls.to_egress(message))


class Calls(AsyncFunction[Group, Any]):
    """Calls the functions of one subtask."""

    def __init__(
        self,
        context: OperatorContext,
        functions: Mapping[str, StatefulFunction],
        egresses: Mapping[str, Type | None],
        delays: Delays,
        timeout: float,
    ) -> None:
        """`timeout` is that of a call of a coroutine function, in seconds; 0 for none."""
        self.context, self.delays = context, delays
        self._functions, self._egresses, self._timeout = functions, egresses, timeout
        self._storages = {typename: storage_class(function, context) for typename, function in functions.items()}

    def to_record(self, message: Any, caller: str) -> Record:
        """Return a message as a record; raise if nobody can get it."""
        if not isinstance(message, Message):
            msg = f"{message!r} is not a message to a function"
            hint = "use send_egress" if isinstance(message, EgressMessage) else "create it with message_builder"
            raise InvalidArgumentType(msg, hint=hint)
        typename = message.target_typename
        if typename not in self._functions:
            raise UnknownFunctionType(typename, self._functions)
        value = message.typed_value
        return message.target_id, typename, caller, value.typename, value.value

    def to_egress(self, message: Any) -> tuple[str, Any]:
        """Return the egress of a message, and the record for it."""
        if not isinstance(message, EgressMessage):
            msg = f"{message!r} is not a message to an egress"
            raise InvalidArgumentType(msg, hint="create it with egress_message_builder or kafka_egress_message")
        if message.typename not in self._egresses:
            raise UnknownEgress(message.typename, list(self._egresses))
        value_type, value = self._egresses[message.typename], message.typed_value
        return message.typename, (value.typename, value.value) if value_type is None else value.as_type(value_type)

    def is_async(self, typename: str) -> bool:
        """Whether the function of a type is a coroutine function."""
        return self._functions[typename].is_async

    def begin(self, typename: str, id: str) -> CallContext:
        """Return the context for the messages of an address, and keep the values alive that expire after calls."""
        storage, kept_alive = self._storages[typename]
        if kept_alive:
            self.context.scope.key = id
            for view in kept_alive:
                view.value()
        return CallContext(self, typename, id, storage(id))

    def call(self, group: Group) -> CallContext:
        """Call a function for the messages of an address."""
        (typename, id), records = group
        function, context = self._functions[typename].fun, self.begin(typename, id)
        record = records[0]
        try:
            for record in records:
                context.caller_address = record[2]
                function(context, Message(typename, id, TypedValue(record[3], True, record[4])))
        except (Exception, SystemExit) as problem:
            raise self._failure(problem, record) from problem
        return context

    async def async_invoke(self, value: Group) -> list[CallContext]:
        """Call a coroutine function for the messages of an address."""
        (typename, id), records = value
        function, context = self._functions[typename].fun, self.begin(typename, id)
        record = records[0]
        deadline: asyncio.Timeout | None = None
        try:
            for record in records:
                context.caller_address = record[2]
                message = Message(typename, id, TypedValue(record[3], True, record[4]))
                async with asyncio.timeout(self._timeout or None) as deadline:
                    await function(context, message)
        except (Exception, SystemExit) as problem:
            is_late = isinstance(problem, TimeoutError) and deadline is not None and deadline.expired()
            raise self._failure(CallTimedOut(self._timeout) if is_late else problem, record) from problem
        return [context]

    def _failure(self, problem: BaseException, record: Record) -> MillstreamError:
        """Return the error to raise, with the address and the message."""
        return rowwise.failure(self.context.name, problem, f"{record[1]}:{record[0]}", _Delivery(record))


def call_groups(
    calls: Calls, records: list[Record], run_async: Callable[[list[Group]], list[CallContext]]
) -> list[CallContext]:
    """Call the functions for some messages, grouped by address, and return the contexts with what they sent."""
    groups: dict[tuple[str, str], list[Record]] = {}
    rowwise.group_rows([(record[1], record[0]) for record in records], records, groups)
    waiting: list[Group] = []
    contexts: list[CallContext] = []
    for group in groups.items():
        if calls.is_async(group[0][0]):
            waiting.append(group)
        else:
            contexts.append(calls.call(group))
    return contexts + run_async(waiting) if waiting else contexts
