"""The order of partial matches: a binary heap by the number of their first event.

Promises: the same arrangement as java.util.PriorityQueue. It decides the order of matches with equal ranks, so matches
are in Flink's order.
Does not know: what the entries are; the last field of each is its rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Heap = list[tuple[Any, ...]]


def add(heap: Heap, entry: tuple[Any, ...]) -> None:
    """Add an entry."""
    index = len(heap)
    heap.append(entry)
    if index and entry[-1] < heap[(index - 1) >> 1][-1]:
        _rise(heap, index, entry)


def add_all(heap: Heap, entries: Iterable[tuple[Any, ...]]) -> None:
    """Add entries, one by one."""
    for entry in entries:
        index = len(heap)
        heap.append(entry)
        if index and entry[-1] < heap[(index - 1) >> 1][-1]:
            _rise(heap, index, entry)


def poll(heap: Heap) -> tuple[Any, ...]:
    """Remove and return the first entry."""
    first = heap[0]
    last = heap.pop()
    if heap:
        _sink(heap, 0, last)
    return first


def remove(heap: Heap, must_remove: Callable[[tuple[Any, ...]], bool]) -> list[tuple[Any, ...]]:
    """Remove and return all entries that satisfy a predicate."""
    removed = [entry for entry in heap if must_remove(entry)]
    if removed:
        heap[:] = [entry for entry in heap if not must_remove(entry)]
        for index in range((len(heap) >> 1) - 1, -1, -1):
            _sink(heap, index, heap[index])
    return removed


def _rise(heap: Heap, index: int, entry: tuple[Any, ...]) -> None:
    rank = entry[-1]
    while index:
        parent = (index - 1) >> 1
        above = heap[parent]
        if rank >= above[-1]:
            break
        heap[index] = above
        index = parent
    heap[index] = entry


def _sink(heap: Heap, index: int, entry: tuple[Any, ...]) -> None:
    count = len(heap)
    half = count >> 1
    rank = entry[-1]
    while index < half:
        child = 2 * index + 1
        if child + 1 < count and heap[child][-1] > heap[child + 1][-1]:
            child += 1
        below = heap[child]
        if rank <= below[-1]:
            break
        heap[index] = below
        index = child
    heap[index] = entry
