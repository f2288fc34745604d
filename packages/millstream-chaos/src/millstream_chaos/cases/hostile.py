"""Pickles that run code when they are loaded, in every part of a checkpoint or savepoint that could contain a pickle.

Promises: nothing from storage is executed, even if the checksums are right: no pickle is loaded, which an audit hook of
the interpreter checks, and the job fails with an error or continues unharmed.
Does not know: the format of the files; it forges whole files, fields of JSON, cells of state tables, and log
records."""

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
from millstream.types.factory import Types
from millstream_chaos.samples.programs import one_split
from millstream_chaos.simulation import ROOT, Faults, Setup, World, compute_reference, find_operation, run
from millstream_chaos.storage.memory_files import MemoryFileSystem
from millstream_chaos.trace import Report, Trace

PLACES = (
    *("metadata", "field", "state file", "cell", "log", "everything"),
    *("savepoint metadata", "savepoint field", "savepoint state file", "savepoint cell", "savepoint everything"),
)
CHECKPOINT, SAVEPOINTS = f"{ROOT}/job/chk-2", "/savepoints"
_SIZES = {"ci": 100, "normal": 200, "long": 500}
_exploded: list[str] = []
_watching: list[list[str]] = []


def plan(seed: int, size: str) -> Trace:
    """Draw the parts to forge and the pickle protocols."""
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
    """Record that a pickle was executed."""
    _exploded.append("boom")
    return "boom"


class Bomb:
    """An object whose pickle runs code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return detonate, ()


class Remember(KeyedProcessFunction):
    """A function with untyped state, which is stored as encoded objects."""

    def open(self, runtime_context: Any) -> None:
        """Declare the state."""
        self._last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))
        pickled = Types.PICKLED_BYTE_ARRAY()
        self._seen = runtime_context.get_map_state(MapStateDescriptor("seen", pickled, pickled))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        """Emit the state and update it."""
        yield value, self._last.value(), len(list(self._seen.keys()))
        self._last.update(value)
        self._seen.put(value[2], value)


def program(environment: StreamExecutionEnvironment) -> DataStream:
    """Build the job whose files are forged."""
    return one_split(environment).key_by(lambda value: value[0]).process(Remember())


SETUP = Setup(program, epoch_records=5, options={"restart-strategy.type": "none"})


def create_targets() -> dict[str, tuple[MemoryFileSystem, Setup, str]]:
    """Return the disks of a job that crashed after a checkpoint and of one that was stopped with a savepoint, each
    with the setup that continues the job and the directory of the checkpoint or savepoint."""
    with World() as world:
        run(SETUP, world, Faults(storage=(find_operation(SETUP, "chk-2/_metadata", "/shared/"), "after")))
        world.disk.files.pop(f"{ROOT}/job/chk-1/_metadata", None)
        crashed = world.disk, SETUP, CHECKPOINT
    savepoints: list[Future[str]] = []

    def stop(event: JobEvent, master: JobMaster) -> None:
        if isinstance(event, EpochDone) and event.epoch == 3:
            savepoints.append(master.savepoint(SAVEPOINTS, stop=True))

    with World() as world:
        run(SETUP, world, listen=stop)
        path = savepoints[0].result(0)
        options = {**SETUP.options, "execution.state-recovery.path": path}
        return {"checkpoint": crashed, "savepoint": (world.disk, replace(SETUP, job="next", options=options), path)}


def play(trace: Trace, _directory: Path) -> Report:
    """Forge one part at a time, and start the job again."""
    report = Report(trace)
    pickle.loads(pickle.dumps(Bomb()))
    report.check(_exploded == ["boom"], "the pickle does not run its code when it is loaded")
    _exploded.clear()
    disks = create_targets()
    expected = compute_reference(SETUP)
    refused = unharmed = 0
    with watch_pickles() as loaded:
        for step in trace.iterate_steps():
            disk, setup, where = disks["savepoint" if step["place"].startswith("savepoint") else "checkpoint"]
            with World() as world:
                world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
                bomb = pickle.dumps(Bomb(), step["protocol"])
                forge(world.disk, where, step["place"].removeprefix("savepoint "), bomb, step["which"])
                life = run(setup, world)
                refused += life.status is JobStatus.FAILED
                if life.status is JobStatus.FINISHED:
                    unharmed += 1
                    report.check(world.visible() == expected, f"{step}: the output differs")
    report.check(not _exploded, f"{len(_exploded)} pickles were executed")
    report.check(not loaded, f"pickles were loaded: {sorted(set(loaded))}")
    report.check(refused > 0, "no forgery was refused, so perhaps none was read")
    report.figures |= {"forgeries": len(trace.steps), "refused": refused, "continued unharmed": unharmed}
    return report


@contextlib.contextmanager
def watch_pickles() -> Iterator[list[str]]:
    """Collect the functions of this module that pickles load in the `with` block. An audit hook cannot be removed."""
    loaded: list[str] = []
    if not _watching:
        sys.addaudithook(_on_audit_event)
    _watching.append(loaded)
    try:
        yield loaded
    finally:
        _watching.remove(loaded)
        _watching.insert(0, [])  # the hook stays, and must not be added twice


def _on_audit_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class" and arguments[1:] == ("detonate",):
        for loaded in _watching:
            loaded.append(".".join(map(str, arguments)))


# ------------------------------------------------------------------------------------------------------------- forging


def forge(disk: MemoryFileSystem, where: str, place: str, bomb: bytes, which: int) -> None:
    """Put a pickle into one part of the checkpoint or savepoint in a directory, with correct checksums."""
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
            _forge_states(disk, where, lambda data: put_bombs_into_state(data, column, bomb), which)
        case "cell":
            _forge_states(disk, where, lambda data: put_bombs_into_parquet(data, bomb), which)
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
    """Replace state files, or one of them, by the results of `change`."""
    root = ROOT if where == CHECKPOINT else where  # names in the metadata are relative to it
    metadata = _read_metadata(disk, where)
    handles = [
        handle for operator in metadata["operators"] for part in operator["subtasks"] for handle in part["files"]
    ]
    chosen = handles if which % 2 else [handles[which % len(handles)]]
    for handle in chosen:
        begin = handle.pop("offset", 0)
        whole = disk.files[f"{root}/{handle.pop('pack', handle['name'])}"]
        disk.files[f"{root}/{handle['name']}"] = forged = change(whole[begin : begin + handle["size"]])
        handle["size"], handle["sha256"] = len(forged), hashlib.sha256(forged).hexdigest()
    _write_metadata(disk, where, json.dumps(metadata).encode())


def put_bombs_into_parquet(data: bytes, bomb: bytes) -> bytes:
    """Return the state file of a savepoint with a pickle in every cell that holds an encoded object."""
    table = pq.read_table(io.BytesIO(data))
    for index, field in enumerate(table.schema):
        if field.type in (pa.binary(), pa.large_binary()):
            table = table.set_column(index, field, pa.array([bomb] * len(table), type=field.type))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def put_bombs_into_state(data: bytes, column: str, bomb: bytes) -> bytes:
    """Return the state file with a pickle in every cell of a column that holds encoded objects."""
    size = int.from_bytes(data[4:8], "little")
    header, offset, streams = json.loads(data[8 : 8 + size]), 8 + size, []
    for entry in header:
        table = pa.ipc.open_stream(data[offset : offset + entry["length"]]).read_all()
        offset += entry["length"]
        index = table.schema.get_field_index(column)
        data_type = table.schema.field(index).type
        if data_type in (pa.binary(), pa.large_binary()):
            table = table.set_column(index, column, pa.array([bomb] * len(table), type=data_type))
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        entry["length"] = len(sink.getvalue())
        streams.append(sink.getvalue())
    text = json.dumps(header).encode()
    return b"".join([data[:4], len(text).to_bytes(4, "little"), text, *streams])
