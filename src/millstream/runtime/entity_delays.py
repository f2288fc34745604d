"""Delayed messages of stateful functions: kept by the id and type of the sender until they are due, or cancelled.

Promises: a message is delivered once, at the first epoch whose processing time is not before its time; messages of one
sender that are due at the same time keep their order.
Does not know: functions, how messages are delivered."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.functions.entities.value_types import BYTES
from millstream.runtime.timers import Timers
from millstream.state.backend import OperatorState
from millstream.state.store import ABSENT
from millstream.types.factory import Types

Record = tuple[str, str, str, str, bytes]
"""A message: the id and type of its target; its caller as `typename:id`, empty for an ingress;
type and bytes of its value."""

RECORD = Types.TUPLE([Types.STRING(), Types.STRING(), Types.STRING(), Types.STRING(), BYTES])

_DELAYED = Types.TUPLE([Types.STRING(), *RECORD.field_types])  # the token, then the message


class Delays:
    """State by the id of the sender. Namespaces are its type and the time for messages, its type and the token for the
    times of a token, and its type for timers."""

    def __init__(self, state: OperatorState) -> None:
        self._messages = state.table("delayed", Types.LIST(_DELAYED))
        self._tokens = state.table("tokens", Types.LIST(Types.LONG()))
        self._timers = Timers(state, "processing")

    def add(self, typename: str, id: str, time: int, token: str, record: Record) -> None:
        """Keep a message of a sender until `time`; the token is empty if it cannot be cancelled."""
        before = self._messages.get((typename, time), id)
        self._messages.put((typename, time), id, [*(() if before is ABSENT else before), (token, *record)])
        self._timers.register(typename, id, time)
        if token:
            times = self._tokens.get((typename, token), id)
            self._tokens.put((typename, token), id, [time] if times is ABSENT else sorted({*times, time}))

    def cancel(self, typename: str, id: str, token: str) -> None:
        """Drop the messages that a sender sent with a token."""
        times = self._tokens.get((typename, token), id)
        if times is ABSENT:
            return
        self._tokens.delete((typename, token), id)
        for time in times:
            messages = self._messages.get((typename, time), id)
            kept = [] if messages is ABSENT else [message for message in messages if message[0] != token]
            self._messages.put((typename, time), id, kept or ABSENT)
            if not kept:
                self._timers.delete(typename, id, time)

    def take_due(self, now: int) -> Iterator[tuple[str, Record]]:
        """Remove and yield the messages that are due, each with the id of its sender."""
        for time, typename, id in self._timers.due(now):
            messages = self._messages.get((typename, time), id)
            if messages is ABSENT:
                continue
            self._messages.delete((typename, time), id)
            for token in dict.fromkeys(message[0] for message in messages if message[0]):
                remaining = [other for other in self._tokens.get((typename, token), id) if other != time]
                self._tokens.put((typename, token), id, remaining or ABSENT)
            for _, *record in messages:
                yield id, tuple(record)

    def next_time(self) -> int | None:
        """Return the time of the next message; None if there is none."""
        return self._timers.next()
