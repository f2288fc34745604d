"""Many small state files of a checkpoint as one: a file is dear where storage is far, its bytes are not.

Promises: what a packed handle names is byte for byte what it named before, under the name it had; a file is packed
once, so few are left by themselves however many operators there are; memory is needed for one pack at a time; the
files that were packed are deleted by the next sweep.
Does not know: what is in a file, or which checkpoints are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import CheckpointStorage
from millstream.state.handles import Handle

LARGEST = 32 << 20  # bytes of a pack, roughly; the process that makes it holds it in memory
SMALL = 256 << 10  # bytes; a larger file stays by itself
FEWEST = 16  # files worth a pack: writing one takes as long as publishing a checkpoint


def _divided(handles: Iterable[Handle]) -> Iterator[list[Handle]]:
    chosen: list[Handle] = []
    for handle in handles:
        chosen.append(handle)
        if sum(each.size for each in chosen) >= LARGEST:
            yield chosen
            chosen = []
    if chosen:
        yield chosen


def packed(metadata: CheckpointMetadata, storage: CheckpointStorage) -> CheckpointMetadata:
    """The checkpoint, its small files in one, if there are many."""
    small = [each for each in metadata.handles if not each.pack and each.size < SMALL]
    if len(small) < FEWEST:
        return metadata
    files = StateReader(storage)
    name = f"shared/pack-{metadata.checkpoint}-{metadata.epoch}-{metadata.generation}"
    places: dict[str, Handle] = {}
    for number, handles in enumerate(_divided(small)):
        parts = [files.read(handle) for handle in handles]
        stored, offset = storage.write(f"{name}-{number}", b"".join(parts)), 0
        for handle, part in zip(handles, parts, strict=True):
            places[handle.name] = dataclasses.replace(handle, pack=stored.name, offset=offset)
            offset += len(part)

    def place(handle: Handle) -> Handle:
        return places.get(handle.name, handle)

    operators = tuple(
        dataclasses.replace(
            operator,
            lineages=tuple(
                dataclasses.replace(lineage, own=tuple(map(place, lineage.own))) for lineage in operator.lineages
            ),
        )
        for operator in metadata.operators
    )
    return dataclasses.replace(metadata, operators=operators)
