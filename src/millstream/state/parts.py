"""Bases in parts: which of them are read, and which key groups are written anew next.

Promises: whoever reads the files of a chain in order, each over those before it, has the state; the parts that are next
are those whose renewal lets changes go first.
Does not know: what is inside a file, stores, or when a part is written.

A base is as of the end of its epoch, and a chain has all changes since its oldest base. So an entry that an older base
or a file of changes brings back is changed again, by later changes, to what a newer base had: nothing needs to be left
out. For the same reason it does no harm when changes of several epochs are in one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.state.handles import Chain, Handle, Lineage, covered
from millstream.state.key_groups import KeyGroupRange

PART_ROWS = 1 << 18
PART_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An order to a subtask: write so many parts anew, each of about so many entries and bytes at most.

    A part is never less than a key group."""

    parts: int
    rows: int = PART_ROWS
    size: int = PART_BYTES


Compaction = int | Rewrite  # a number: that own file and all after it become one; 0 is everything


def needed(chain: Chain, wanted: KeyGroupRange) -> Iterator[Handle]:
    """The files of a chain without parts that have nothing to say about `wanted` key groups."""
    for handle in chain:
        part = handle.part
        if part is None or part.chunks or part.written.start == part.of.start or part.groups.intersects(wanted):
            yield handle


def next_groups(lineage: Lineage, of: KeyGroupRange, rewrite: Rewrite) -> KeyGroupRange:
    """The key groups to write anew: the first that have no base yet, else those of the oldest part.

    Small parts that follow it are taken along, so that there do not come to be many."""
    parts = [(base, base.part.groups if base.part is not None else of) for base in lineage.bases]
    expected = of.start
    for _, groups in parts:
        if groups.start > expected:
            return KeyGroupRange(expected, groups.start - 1)
        expected = groups.end + 1
    if expected <= of.end:
        return KeyGroupRange(expected, of.end)
    at = min(range(len(parts)), key=lambda each: parts[each][0].epoch)
    oldest, groups = parts[at]
    end, rows, size = groups.end, oldest.rows, oldest.weight
    for base, following in parts[at + 1 :]:
        rows, size = rows + base.rows, size + base.weight
        if rows > rewrite.rows or size > rewrite.size:
            break
        end = following.end
    return KeyGroupRange(groups.start, end)


def is_renewed(lineage: Lineage, epoch: int) -> bool:
    """Whether every key group has a base of this epoch."""
    bases = lineage.bases
    whole = len(bases) == 1 and bases[0].part is None
    return (whole or covered(bases)) and all(base.epoch == epoch for base in bases)
