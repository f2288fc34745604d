"""Messages between entities, the same for every contestant: who gets a message next.

Promises: standard library only; the way of a message depends on its number alone.
Does not know: any engine."""

from __future__ import annotations

from benchmarks import common

ENTITIES = 100_000
HOPS = 4


def next_entity(entity: int, number: int, entities: int) -> int:
    """The entity that gets the message after `entity`."""
    return (entity * 31 + number % 1_009 + 1) % entities


def expected() -> dict[str, int]:
    """The digest of (last entity, message) of the check."""
    rows = []
    for number in range(common.CHECK_RECORDS):
        entity = number % common.CHECK_KEYS
        for _ in range(HOPS - 1):
            entity = next_entity(entity, number, common.CHECK_KEYS)
        rows.append((entity, number))
    return common.digest(rows)
