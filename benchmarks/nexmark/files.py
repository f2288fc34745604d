"""Nexmark's events as files of JSON lines that every engine reads.

Promises: event `i` is a line of file `i % parts`, so that event time moves on evenly in all of them; a folder that has
been written is kept, and is whole or absent.
Does not know: engines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.nexmark.generator import BLOCK, Nexmark
from benchmarks.nexmark.program import SIDE_ROWS

_HEADS = ('{"event_type":0,"person":{', '{"event_type":1,"auction":{', '{"event_type":2,"bid":{')


def lines(nexmark: Nexmark, count: int) -> Iterator[pa.Array]:
    """The events as JSON objects, block by block."""
    for number in range(-(-count // BLOCK)):
        kinds, *records = nexmark.block(number)
        texts = pa.concat_arrays([_objects(head, each) for head, each in zip(_HEADS, records, strict=True)])
        order = np.empty(BLOCK, dtype=np.int64)
        order[np.argsort(kinds, kind="stable")] = np.arange(BLOCK)
        yield texts.take(pa.array(order)).slice(0, min(BLOCK, count - number * BLOCK))


def _objects(head: str, records: pa.Array) -> pa.Array:
    """Records as JSON. Their texts have no sign that JSON would escape."""
    parts: list[pa.Array | str] = [head]
    for place, field in enumerate(records.type):
        column = records.field(place)
        quote = "" if pa.types.is_integer(field.type) else '"'
        if pa.types.is_timestamp(field.type):
            column = pc.strftime(column, "%Y-%m-%d %H:%M:%S")
        else:
            column = column.cast(pa.string())
        parts += [f'{"," if place else ""}"{field.name}":{quote}', column, quote]
    return pc.binary_join_element_wise(*parts, "}}", "")


def written(folder: Path, nexmark: Nexmark, count: int, parts: int = 1) -> Path:
    """The folder with the events, made if it is absent."""
    name = f"nexmark-{count}-{parts}-{nexmark.seed}-{nexmark.rate}-{nexmark.start}"
    place = folder / name
    if place.exists():
        return place
    draft = folder / f"{name}.{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    outputs = [(draft / f"part-{part}.json").open("wb") for part in range(parts)]
    try:
        for block in lines(nexmark, count):
            for part, output in enumerate(outputs):
                mine = block.take(pa.array(np.arange(part, len(block), parts)))  # a block has a multiple of the parts
                output.write("\n".join(mine.to_pylist()).encode() + b"\n")
    finally:
        for output in outputs:
            output.close()
    draft.rename(place)
    return place


def side_input(folder: Path) -> Path:
    """The file of q13's side input: numbers with their texts."""
    path = folder / "side-input" / "side_input.csv"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{key},{value}\n" for key, value in SIDE_ROWS))
    return path
