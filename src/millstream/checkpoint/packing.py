"""Many small state files of a checkpoint as one: a file is dear where storage is far, its bytes are not.

Promises: what a packed handle names is byte for byte what it named before, under the name it had; a file is packed
once, so few are left by themselves however many operators there are; the files that were packed are left for whoever
sweeps.
Does not know: what is in a file, or which checkpoints are kept."""

from __future__ import annotations

import dataclasses

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import CheckpointStorage
from millstream.state.handles import Handle

SMALL = 256 << 10  # bytes; a larger file stays by itself
FEWEST = 16  # files worth a pack: writing one takes as long as publishing a checkpoint


def packed(metadata: CheckpointMetadata, storage: CheckpointStorage) -> CheckpointMetadata:
    """The checkpoint, its small files in one, if there are many."""
    small = [each for each in metadata.handles if not each.pack and each.size < SMALL]
    if len(small) < FEWEST:
        return metadata
    files = StateReader(storage)
    parts = [files.read(handle) for handle in small]
    name = f"shared/pack-{metadata.checkpoint}-{metadata.epoch}-{metadata.generation}-0"
    stored = storage.write(name, b"".join(parts))
    offset, places = 0, {}
    for handle, part in zip(small, parts, strict=True):
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
