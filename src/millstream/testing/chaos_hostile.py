"""Pickles that would run code, in every place of a checkpoint or savepoint where somebody might load one.

Promises: nothing from storage is executed, even when the forger has the right checksums: no pickle is loaded, which an
audit hook of the interpreter watches, and the job ends with an error or goes on as if nothing were there.
Does not know: which places exist; it forges whole files, fields of JSON, cells of state tables, and log records."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import pickle
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.job_events import EpochDone, JobEvent
from millstream.cluster.job_master import JobMaster
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.functions import KeyedProcessFunction
from millstream.job.job_status import JobStatus
from millstream.state_descriptors.descriptors import MapStateDescriptor, ValueStateDescriptor
from millstream.testing.chaos import Report, Trace
from millstream.testing.memory_files import MemoryFileSystem
from millstream.testing.sample_programs import one_split
from millstream.testing.simulation import ROOT, Faults, Setup, World, point, reference, run
from millstream.types.factory import Types

PLACES = (
    *("metadata", "field", "state file", "cell", "log", "everything"),
    *("savepoint metadata", "savepoint field", "savepoint state file", "savepoint cell", "savepoint everything"),
)
CHECKPOINT, SAVEPOINTS = f"{ROOT}/job/chk-2", "/savepoints"
_SIZES = {"ci": 100, "normal": 200, "long": 500}
_exploded: list[str] = []
_watching: list[list[str]] = []


def plan(seed: int, size: str) -> Trace:
    """Which place is forged how."""
    chance = np.random.default_rng([seed, 23])
    steps = [
        {
            "place": PLACES[int(chance.integers(0, len(PLACES)))],
            "protocol": int(chance.integers(0, pickle.HIGHEST_PROTOCOL + 1)),
            "which": int(chance.integers(0, 1 << 30)),
        }
        for _ in range(_SIZES[size])
    ]
    return Trace("hostile", seed, size, {}, steps)


def detonate() -> str:
    """What a bomb does when it is loaded."""
    _exploded.append("boom")
    return "boom"


class Bomb:
    """An object whose pickle runs code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return detonate, ()


class Remember(KeyedProcessFunction):
    """State without a type: what is stored are encoded objects."""

    def open(self, runtime_context: Any) -> None:
        """Find the state."""
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))
        kinds = (Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())
        self._seen = runtime_context.get_map_state(MapStateDescriptor("seen", *kinds))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Remember."""
        yield value, self._last.value(), len(list(self._seen.keys()))
        self._last.update(value)
        self._seen.put(value[2], value)


def program(environment: StreamExecutionEnvironment) -> DataStream:
    """The job whose files are forged."""
    return one_split(environment).key_by(lambda value: value[0]).process(Remember())


SETUP = Setup(program, epoch_records=5, options={"restart-strategy.type": "none"})


def targets() -> dict[str, tuple[MemoryFileSystem, Setup, str]]:
    """Disks with what is forged: a job that died after a checkpoint, and one that was stopped with a savepoint; how to
    go on from it, and its directory."""
    with World() as world:
        run(SETUP, world, Faults(storage=(point(SETUP, "chk-2/_metadata", "/shared/"), "after")))
        world.disk.files.pop(f"{ROOT}/job/chk-1/_metadata", None)
        crashed = world.disk, SETUP, CHECKPOINT
    asked: list[Future[str]] = []

    def stop(observation: JobEvent, master: JobMaster) -> None:
        if isinstance(observation, EpochDone) and observation.epoch == 3:
            asked.append(master.savepoint(SAVEPOINTS, stop=True))

    with World() as world:
        run(SETUP, world, listen=stop)
        path = asked[0].result(0)
        options = {**SETUP.options, "execution.state-recovery.path": path}
        return {"checkpoint": crashed, "savepoint": (world.disk, replace(SETUP, job="next", options=options), path)}


def play(trace: Trace, _directory: Path) -> Report:
    """Forge one thing at a time, and start the job again."""
    report = Report(trace)
    pickle.loads(pickle.dumps(Bomb()))
    report.check(_exploded == ["boom"], "the bomb is a dud")
    _exploded.clear()
    made = targets()
    expected = reference(SETUP)
    refused = went_on = 0
    with audited() as loaded:
        for step in trace.shown():
            disk, setup, where = made["savepoint" if step["place"].startswith("savepoint") else "checkpoint"]
            with World() as world:
                world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
                bomb = pickle.dumps(Bomb(), step["protocol"])
                forge(world.disk, where, step["place"].removeprefix("savepoint "), bomb, step["which"])
                life = run(setup, world)
                refused += life.status is JobStatus.FAILED
                if life.status is JobStatus.FINISHED:
                    went_on += 1
                    report.check(world.visible() == expected, f"{step}: the output differs")
    report.check(not _exploded, f"{len(_exploded)} bombs went off")
    report.check(not loaded, f"the interpreter was asked for {sorted(set(loaded))}")
    report.check(refused > 0, "no forgery was noticed, so perhaps none was read")
    report.figures |= {"forgeries": len(trace.steps), "refused": refused, "went on unharmed": went_on}
    return report


@contextlib.contextmanager
def audited() -> Iterator[list[str]]:
    """What pickles ask the interpreter for, of this module's bombs, while this is open. A hook cannot be removed."""
    loaded: list[str] = []
    if not _watching:
        sys.addaudithook(_heard)
    _watching.append(loaded)
    try:
        yield loaded
    finally:
        _watching.remove(loaded)
        _watching.insert(0, [])  # the hook stays, and is told of nobody


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and arguments[1:] == ("detonate",):
        for loaded in _watching:
            loaded.append(".".join(map(str, arguments)))


# ------------------------------------------------------------------------------------------------------------- forging


def forge(disk: MemoryFileSystem, where: str, place: str, bomb: bytes, which: int) -> None:
    """Put a bomb into one place of the checkpoint or savepoint in a directory, with right checksums."""
    match place:
        case "metadata":
            _write_metadata(disk, where, bomb)
        case "field":
            metadata = _read_metadata(disk, where)
            names = sorted(metadata)
            metadata[names[which % len(names)]] = bomb.decode("latin-1")
            _write_metadata(disk, where, json.dumps(metadata).encode())
        case "state file":
            _forge_states(disk, where, lambda _: bomb, which)
        case "cell" if where == CHECKPOINT:
            column = ("namespace", "key", "value")[which % 3]
            _forge_states(disk, where, lambda data: with_bombs(data, column, bomb), which)
        case "cell":
            _forge_states(disk, where, lambda data: parquet_with_bombs(data, bomb), which)
        case "log":
            storage = CheckpointStorage(ROOT, "job", fs=disk)
            storage.append_log("epochs.log", bomb if which % 2 else json.dumps(bomb.decode("latin-1")).encode())
        case "everything":
            whole = f"{ROOT}/job/" if where == CHECKPOINT else f"{where}/"
            for path in [path for path in disk.files if path.startswith(whole)]:
                disk.files[path] = bomb


def _read_metadata(disk: MemoryFileSystem, where: str) -> Any:
    data = disk.files[f"{where}/_metadata"]
    return json.loads(data[: data.rindex(b"\nsha256 ")])


def _write_metadata(disk: MemoryFileSystem, where: str, data: bytes) -> None:
    footer = b"\nsha256 %s\n" % hashlib.sha256(data).hexdigest().encode()
    disk.files[f"{where}/_metadata"] = data + footer


def _forge_states(disk: MemoryFileSystem, where: str, change: Any, which: int) -> None:
    """Replace state files, or one of them, by what `change` makes of them."""
    root = ROOT if where == CHECKPOINT else where  # which names in the metadata are relative to
    metadata = _read_metadata(disk, where)
    handles = [h for each in metadata["operators"] for part in each["subtasks"] for h in part["files"]]
    chosen = handles if which % 2 else [handles[which % len(handles)]]
    for handle in chosen:
        begin = handle.pop("offset", 0)
        whole = disk.files[f"{root}/{handle.pop('pack', handle['name'])}"]
        disk.files[f"{root}/{handle['name']}"] = made = change(whole[begin : begin + handle["size"]])
        handle["size"], handle["sha256"] = len(made), hashlib.sha256(made).hexdigest()
    _write_metadata(disk, where, json.dumps(metadata).encode())


def parquet_with_bombs(data: bytes, bomb: bytes) -> bytes:
    """The state file of a savepoint with a bomb in every cell that holds an encoded object."""
    table = pq.read_table(io.BytesIO(data))
    for place, field in enumerate(table.schema):
        if field.type in (pa.binary(), pa.large_binary()):
            table = table.set_column(place, field, pa.array([bomb] * len(table), type=field.type))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def with_bombs(data: bytes, column: str, bomb: bytes) -> bytes:
    """The state file with a bomb in every cell of a column that holds encoded objects."""
    size = int.from_bytes(data[4:8], "little")
    header, at, streams = json.loads(data[8 : 8 + size]), 8 + size, []
    for entry in header:
        table = pa.ipc.open_stream(data[at : at + entry["length"]]).read_all()
        at += entry["length"]
        index = table.schema.get_field_index(column)
        kind = table.schema.field(index).type
        if kind in (pa.binary(), pa.large_binary()):
            table = table.set_column(index, column, pa.array([bomb] * len(table), type=kind))
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        entry["length"] = len(sink.getvalue())
        streams.append(sink.getvalue())
    text = json.dumps(header).encode()
    return b"".join([data[:4], len(text).to_bytes(4, "little"), text, *streams])
