"""The shared buffer: the events of partial matches, each stored once, and the paths through them.

A node records that an event was accepted under a name, after another node. Partial matches with a common beginning
share its nodes. The buffer consists of plain dictionaries and lists, so that it can be stored as state directly.

Promises: a node lives as long as a partial match or a later node needs it, an event as long as a node does.
Does not know: states, conditions, windows."""

from __future__ import annotations

from typing import Any

from millstream.types.factory import RowTypeInfo, TypeInformation
from millstream.types.row import Row, RowKind

NONE = -1
_EVENT, _NAME, _BEFORE, _USES = 0, 1, 2, 3


class EventForm:
    """How events are stored: rows of a known type as tuples, which are much cheaper in state files."""

    def __init__(self, event_type: TypeInformation | None = None) -> None:
        self._names = event_type.field_names if isinstance(event_type, RowTypeInfo) else None

    def encode(self, event: Any) -> Any:
        """Return the stored form of an event."""
        if self._names is None or event.__class__ is not Row or event._row_kind is not RowKind.INSERT:
            return event
        return tuple(event._values) if getattr(event, "_fields", None) == self._names else event

    def decode(self, stored: Any) -> Any:
        """Return the event of a stored form."""
        return stored if self._names is None or stored.__class__ is not tuple else Row._from(self._names, list(stored))


class SharedBuffer:
    """A view of the `events` and `nodes` of the current key.

    events: number -> [event, how many nodes hold it]; nodes: number -> [event number, name, node before, uses]."""

    __slots__ = ("_form", "events", "nodes")

    def __init__(self, form: EventForm) -> None:
        self.events: dict[int, list[Any]] = {}
        self.nodes: dict[int, list[Any]] = {}
        self._form = form

    def of(self, events: dict[int, list[Any]], nodes: dict[int, list[Any]]) -> SharedBuffer:
        """Set the current key's events and nodes."""
        self.events, self.nodes = events, nodes
        return self

    def put(self, node: int, event: int, name: int, before: int, value: Any, uses: int) -> None:
        """Add a node that `uses` partial matches refer to."""
        entry = self.events.get(event)
        if entry is None:
            self.events[event] = [self._form.encode(value), 1]
        else:
            entry[1] += 1
        if before != NONE:
            self.nodes[before][_USES] += 1
        self.nodes[node] = [event, name, before, uses]

    def hold(self, node: int) -> None:
        """Count one more reference of a partial match to the node."""
        self.nodes[node][_USES] += 1

    def release(self, node: int) -> None:
        """Drop a reference of a partial match to the node; nodes and events without references are deleted."""
        nodes, events = self.nodes, self.events
        while node != NONE:
            entry = nodes[node]
            entry[_USES] -= 1
            if entry[_USES] > 0:
                return
            del nodes[node]
            event = events[entry[_EVENT]]
            event[1] -= 1
            if not event[1]:
                del events[entry[_EVENT]]
            node = entry[_BEFORE]

    def path(self, node: int) -> list[tuple[int, int]]:
        """Return (name, event number) of every node up to this one, oldest first."""
        steps = []
        nodes = self.nodes
        while node != NONE:
            entry = nodes[node]
            steps.append((entry[_NAME], entry[_EVENT]))
            node = entry[_BEFORE]
        steps.reverse()
        return steps

    def event(self, number: int) -> Any:
        """Return the event with a number."""
        return self._form.decode(self.events[number][0])

    def match(self, node: int, names: list[str]) -> dict[str, list[Any]]:
        """Return the events up to the node by name; names are in the order of their first event."""
        events_by_name: dict[str, list[Any]] = {}
        events, decode = self.events, self._form.decode
        for name, event in self.path(node):
            events_by_name.setdefault(names[name], []).append(decode(events[event][0]))
        return events_by_name
