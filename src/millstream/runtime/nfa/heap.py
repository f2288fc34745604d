"""The order in which partial matches are kept: a binary heap by the number of their first event.

Promises: java.util.PriorityQueue's arrangement, step by step; among equals it decides which match comes first, so that
matches come in Flink's order.
Does not know: what the entries are; the last field of each is its rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Heap = list[tuple[Any, ...]]


def add(heap: Heap, entry: tuple[Any, ...]) -> None:
    """Put an entry in."""
    place = len(heap)
    heap.append(entry)
    if place and entry[-1] < heap[(place - 1) >> 1][-1]:
        _rise(heap, place, entry)


def add_all(heap: Heap, entries: Iterable[tuple[Any, ...]]) -> None:
    """Put entries in, one by one."""
    for entry in entries:
        place = len(heap)
        heap.append(entry)
        if place and entry[-1] < heap[(place - 1) >> 1][-1]:
            _rise(heap, place, entry)


def poll(heap: Heap) -> tuple[Any, ...]:
    """Take the first entry out."""
    first = heap[0]
    last = heap.pop()
    if heap:
        _sink(heap, 0, last)
    return first


def remove(heap: Heap, unwanted: Callable[[tuple[Any, ...]], bool]) -> list[tuple[Any, ...]]:
    """Remove and return all entries that satisfy a predicate."""
    gone = [entry for entry in heap if unwanted(entry)]
    if gone:
        heap[:] = [entry for entry in heap if not unwanted(entry)]
        for place in range((len(heap) >> 1) - 1, -1, -1):
            _sink(heap, place, heap[place])
    return gone


def _rise(heap: Heap, place: int, entry: tuple[Any, ...]) -> None:
    rank = entry[-1]
    while place:
        parent = (place - 1) >> 1
        above = heap[parent]
        if rank >= above[-1]:
            break
        heap[place] = above
        place = parent
    heap[place] = entry


def _sink(heap: Heap, place: int, entry: tuple[Any, ...]) -> None:
    count = len(heap)
    half = count >> 1
    rank = entry[-1]
    while place < half:
        child = 2 * place + 1
        if child + 1 < count and heap[child][-1] > heap[child + 1][-1]:
            child += 1
        below = heap[child]
        if rank <= below[-1]:
            break
        heap[place] = below
        place = child
    heap[place] = entry
