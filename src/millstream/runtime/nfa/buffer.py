"""The shared buffer: events that partial matches hold, each once, and the paths through them.

A node says "this event was taken under this name, after that node". Partial matches with a common beginning share its
nodes. All of it is plain dictionaries and lists, so that it is state as it stands.

Promises: a node lives as long as a partial match or a later node needs it, an event as long as a node does.
Does not know: states, conditions, windows."""

from __future__ import annotations

from typing import Any

NONE = -1
_EVENT, _NAME, _BEFORE, _USES = 0, 1, 2, 3


class SharedBuffer:
    """A view on the `events` and `nodes` of one key.

    events: number -> [event, how many nodes hold it]; nodes: number -> [event number, name, node before, uses]."""

    __slots__ = ("events", "nodes")

    def __init__(self, events: dict[int, list[Any]], nodes: dict[int, list[Any]]) -> None:
        self.events = events
        self.nodes = nodes

    def put(self, node: int, event: int, name: int, before: int, value: Any) -> None:
        """A new node, not yet used by any partial match."""
        held = self.events.get(event)
        if held is None:
            self.events[event] = [value, 1]
        else:
            held[1] += 1
        if before != NONE:
            self.nodes[before][_USES] += 1
        self.nodes[node] = [event, name, before, 0]

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

    def match(self, node: int, names: list[str]) -> dict[str, list[Any]]:
        """The events up to the node by name; names in the order of their first event."""
        found: dict[str, list[Any]] = {}
        events = self.events
        for name, event in self.path(node):
            found.setdefault(names[name], []).append(events[event][0])
        return found
