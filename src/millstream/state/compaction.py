"""Compaction of state files: bases are written in parts; this module decides which key groups are written next.

Promises: applying the files of a lineage in order results in the state; the part that is rewritten next is the one
that holds back the most deltas.
Does not know: the content of files, stores, or when a part is written.

A base holds its key groups as of the end of its epoch, and a lineage holds all deltas since its oldest base. If an
older base or a delta restores an old value of an entry, a later delta sets it to the value that a newer base has. So
files can be applied as a whole, and deltas of several epochs can be merged into one file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.state.handles import Chain, Handle, Lineage, is_complete
from millstream.state.key_groups import KeyGroupRange

PART_ROWS = 1 << 18
PART_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The order to a subtask to rewrite this many parts of its base.

    `rows` and `size` limit the entries and bytes of a part; a part is at least one key group."""

    parts: int
    rows: int = PART_ROWS
    size: int = PART_BYTES


Compaction = int | Rewrite  # an index: merge this file of `Lineage.own` and all later ones; 0 rewrites everything


def select_files(chain: Chain, wanted: KeyGroupRange) -> Iterator[Handle]:
    """Iterate over the files of a chain, without parts that have no entries of the `wanted` key groups."""
    for handle in chain:
        part = handle.part
        if part is None or part.chunks or part.written.start == part.of.start or part.groups.intersects(wanted):
            yield handle


def select_next_groups(lineage: Lineage, of: KeyGroupRange, rewrite: Rewrite) -> KeyGroupRange:
    """Return the key groups to write next: the first that have no base yet, else those of the oldest part.

    Small parts that follow it are merged with it, so that their number stays small."""
    parts = [(base, base.part.groups if base.part is not None else of) for base in lineage.bases]
    expected = of.start
    for _, groups in parts:
        if groups.start > expected:
            return KeyGroupRange(expected, groups.start - 1)
        expected = groups.end + 1
    if expected <= of.end:
        return KeyGroupRange(expected, of.end)
    oldest_index = min(range(len(parts)), key=lambda index: parts[index][0].epoch)
    oldest, groups = parts[oldest_index]
    end, rows, size = groups.end, oldest.rows, oldest.weight
    for base, following in parts[oldest_index + 1 :]:
        rows, size = rows + base.rows, size + base.weight
        if rows > rewrite.rows or size > rewrite.size:
            break
        end = following.end
    return KeyGroupRange(groups.start, end)


def is_rewritten(lineage: Lineage, epoch: int) -> bool:
    """Whether every key group has a base of this epoch."""
    bases = lineage.bases
    is_single = len(bases) == 1 and bases[0].part is None
    return (is_single or is_complete(bases)) and all(base.epoch == epoch for base in bases)
