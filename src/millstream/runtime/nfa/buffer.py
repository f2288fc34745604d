"""The shared buffer: events that partial matches hold, each once, and the paths through them.

A node says "this event was taken under this name, after that node". Partial matches with a common beginning share its
nodes. All of it is plain dictionaries and lists, so that it is state as it stands.

Promises: a node lives as long as a partial match or a later node needs it, an event as long as a node does.
Does not know: states, conditions, windows."""

from __future__ import annotations

from typing import Any

from millstream.types.factory import RowTypeInfo, TypeInformation
from millstream.types.row import Row, RowKind

NONE = -1
_EVENT, _NAME, _BEFORE, _USES = 0, 1, 2, 3


class EventForm:
    """How events are held: rows of a known type as tuples, which state files take at a fraction of the price."""

    def __init__(self, kind: TypeInformation | None = None) -> None:
        self._names = kind.field_names if isinstance(kind, RowTypeInfo) else None

    def stored(self, event: Any) -> Any:
        """What is held of an event."""
        if self._names is None or event.__class__ is not Row or event._row_kind is not RowKind.INSERT:
            return event
        return tuple(event._values) if getattr(event, "_fields", None) == self._names else event

    def given(self, stored: Any) -> Any:
        """The event of what is held."""
        return stored if self._names is None or stored.__class__ is not tuple else Row._from(self._names, list(stored))


class SharedBuffer:
    """A view on the `events` and `nodes` of one key, and then of another.

    events: number -> [event, how many nodes hold it]; nodes: number -> [event number, name, node before, uses]."""

    __slots__ = ("_form", "events", "nodes")

    def __init__(self, form: EventForm) -> None:
        self.events: dict[int, list[Any]] = {}
        self.nodes: dict[int, list[Any]] = {}
        self._form = form

    def of(self, events: dict[int, list[Any]], nodes: dict[int, list[Any]]) -> SharedBuffer:
        """Look at another key."""
        self.events, self.nodes = events, nodes
        return self

    def put(self, node: int, event: int, name: int, before: int, value: Any, uses: int) -> None:
        """A new node, on which `uses` partial matches stand."""
        held = self.events.get(event)
        if held is None:
            self.events[event] = [self._form.stored(value), 1]
        else:
            held[1] += 1
        if before != NONE:
            self.nodes[before][_USES] += 1
        self.nodes[node] = [event, name, before, uses]

    def hold(self, node: int) -> None:
        """A partial match stands on the node."""
        self.nodes[node][_USES] += 1

    def release(self, node: int) -> None:
        """A partial match no longer stands on the node."""
        nodes, events = self.nodes, self.events
        while node != NONE:
            entry = nodes[node]
            entry[_USES] -= 1
            if entry[_USES] > 0:
                return
            del nodes[node]
            held = events[entry[_EVENT]]
            held[1] -= 1
            if not held[1]:
                del events[entry[_EVENT]]
            node = entry[_BEFORE]

    def path(self, node: int) -> list[tuple[int, int]]:
        """(name, event number) of every step up to the node, oldest first."""
        steps = []
        nodes = self.nodes
        while node != NONE:
            entry = nodes[node]
            steps.append((entry[_NAME], entry[_EVENT]))
            node = entry[_BEFORE]
        steps.reverse()
        return steps

    def event(self, number: int) -> Any:
        """The event of a number."""
        return self._form.given(self.events[number][0])

    def match(self, node: int, names: list[str]) -> dict[str, list[Any]]:
        """The events up to the node by name; names in the order of their first event."""
        found: dict[str, list[Any]] = {}
        events, given = self.events, self._form.given
        for name, event in self.path(node):
            found.setdefault(names[name], []).append(given(events[event][0]))
        return found
