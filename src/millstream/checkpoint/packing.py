"""Packs small state files of a checkpoint into few larger ones.

On object stores the number of requests matters more than the number of bytes, so many small files are slow and
expensive.

Promises: a packed file has the same bytes and the same name as before; a file is packed once, so the number of files
stays small however many operators there are; one pack at a time is in memory; the next sweep deletes the files that
were packed.
Does not know: the content of files, or which checkpoints are kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import CheckpointStorage
from millstream.state.handles import Handle, Lineage

LARGEST = 32 << 20  # bytes of a pack, approximately; the process that writes it holds it in memory
SMALL = 256 << 10  # bytes; a larger file is not packed
FEWEST = 16  # fewer files are not packed: writing a pack takes as long as publishing a checkpoint


def _divide_into_packs(handles: Iterable[Handle]) -> Iterator[list[Handle]]:
    pack: list[Handle] = []
    for handle in handles:
        pack.append(handle)
        if sum(member.size for member in pack) >= LARGEST:
            yield pack
            pack = []
    if pack:
        yield pack


def pack_small_files(metadata: CheckpointMetadata, storage: CheckpointStorage) -> CheckpointMetadata:
    """Pack the small state files of a checkpoint if there are many; returns its metadata with the new handles."""
    small = [handle for handle in metadata.handles if not handle.pack and handle.size < SMALL]
    if len(small) < FEWEST:
        return metadata
    files = StateReader(storage)
    name = f"shared/pack-{metadata.checkpoint}-{metadata.epoch}-{metadata.generation}"
    packed: dict[str, Handle] = {}
    for number, handles in enumerate(_divide_into_packs(small)):
        contents = [files.read(handle) for handle in handles]
        stored, offset = storage.write(f"{name}-{number}", b"".join(contents)), 0
        for handle, data in zip(handles, contents, strict=True):
            packed[handle.name] = dataclasses.replace(handle, pack=stored.name, offset=offset)
            offset += len(data)

    def replace_handles(lineage: Lineage) -> Lineage:
        return dataclasses.replace(lineage, own=tuple(packed.get(handle.name, handle) for handle in lineage.own))

    operators = tuple(
        dataclasses.replace(operator, lineages=tuple(map(replace_handles, operator.lineages)))
        for operator in metadata.operators
    )
    return dataclasses.replace(metadata, operators=operators)
