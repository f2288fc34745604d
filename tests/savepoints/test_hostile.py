"""Law 8 for savepoints: no reader executes anything in a savepoint."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millstream.checkpoint.savepoint import open_snapshot
from millstream.cli import main
from millstream.common import Types
from millstream.common.watermark_strategy import WatermarkStrategy
from millstream.datastream.functions import KeyedProcessFunction
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import MillstreamError
from millstream.state_processor import Savepoint, SavepointWriter
from millstream.testing.feed import Feed

EXECUTED: list = []
UNTYPED = ValueStateDescriptor("x", Types.PICKLED_BYTE_ARRAY())


def detonate():
    EXECUTED.append("boom")


class Bomb:
    def __reduce__(self):
        return detonate, ()


BOMBS = [pickle.dumps(Bomb(), protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]


class Keep(KeyedProcessFunction):
    def open(self, runtime_context):
        self.x = runtime_context.get_state(UNTYPED)

    def process_element(self, value, ctx):
        yield self.x.value()


@pytest.fixture
def savepoint(tmp_path):
    EXECUTED.clear()
    pickle.loads(BOMBS[-1])
    assert EXECUTED == ["boom"], "the bomb is a dud"
    EXECUTED.clear()
    data = {1: {1, 2}, (2, "x"): {3}}  # of no plain type: stored as encoded objects
    return SavepointWriter.new_savepoint().with_state("keep", UNTYPED, data).write(str(tmp_path / "savepoint"))


def forge(path, change):
    """Replace the one state file by what `change` makes of it, with the right size and checksum in the metadata."""
    place = Path(path)
    data = (place / "_metadata").read_bytes()
    metadata = json.loads(data[: data.rindex(b"\nsha256 ")])
    (handle,) = metadata["operators"][0]["subtasks"][0]["files"]
    made = change((place / handle["name"]).read_bytes())
    (place / handle["name"]).write_bytes(made)
    handle["size"], handle["sha256"] = len(made), hashlib.sha256(made).hexdigest()
    write_metadata(place, json.dumps(metadata).encode())


def write_metadata(place, data):
    (place / "_metadata").write_bytes(data + b"\nsha256 %s\n" % hashlib.sha256(data).hexdigest().encode())


def with_bombs(data, column, bomb, encoded=True):
    table = pq.read_table(io.BytesIO(data))
    place = table.schema.get_field_index(column)
    metadata = table.schema.metadata
    table = table.set_column(place, column, pa.array([bomb] * len(table), pa.binary()))
    description = json.loads(metadata[b"millstream.state"])
    if encoded:
        description[f"{column}_as"] = description[column] = Types.PICKLED_BYTE_ARRAY().to_json()
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({b"millstream.state": json.dumps(description)}), sink)
    return sink.getvalue()


def read_in_every_way(path, environment):
    """Every way to read a savepoint; none may execute anything, and each must succeed or raise a declared error."""

    def job():
        feed = Feed.of(1)
        feed.close()
        env = environment(parallelism=1)
        env._configuration.set_string("execution.state-recovery.path", path)
        stream = env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed")
        stream.key_by(lambda value: value).process(Keep()).uid("keep").print()
        env.execute_async("victim").get_job_execution_result().result(60)

    def tables():
        for operator in Savepoint(path).operators():
            for state in operator.states():
                state.to_pandas()

    def edit():
        SavepointWriter.from_existing_savepoint(path).write(f"{path}-copy")

    def verify():
        open_snapshot(path).verify()

    ended = []
    for way in (job, tables, edit, verify):
        try:
            way()
            ended.append("well")
        except MillstreamError as problem:
            ended.append(str(problem))
    for words in (["state", "ls", path], ["state", "cat", path, "keep", "x"], ["savepoint", "show", path]):
        main(words)
    return ended


def audited(work):
    """What was loaded by pickle or started as a process meanwhile."""
    seen = []
    on = [True]

    def hook(event, arguments):
        if on[0] and event in ("pickle.find_class", "os.system", "subprocess.Popen", "os.exec"):
            seen.append((event, arguments))

    sys.addaudithook(hook)
    try:
        work()
    finally:
        on[0] = False
    return seen


@pytest.mark.parametrize("bomb", BOMBS, ids=range(len(BOMBS)))
@pytest.mark.parametrize("column", ["key", "value"])
def test_a_pickle_in_a_column(savepoint, environment, bomb, column):
    forge(savepoint, lambda data: with_bombs(data, column, bomb))
    ended = read_in_every_way(savepoint, environment)
    assert EXECUTED == []
    assert all("none of its code was executed" in each for each in ended[:3]), ended


@pytest.mark.parametrize("bomb", [BOMBS[0], BOMBS[-1]], ids=["oldest", "newest"])
def test_a_pickle_as_a_state_file(savepoint, environment, bomb):
    forge(savepoint, lambda _: bomb)
    ended = read_in_every_way(savepoint, environment)
    assert EXECUTED == []
    assert "well" not in ended[:3]


@pytest.mark.parametrize("bomb", [BOMBS[0], BOMBS[-1]], ids=["oldest", "newest"])
def test_a_pickle_as_metadata(savepoint, environment, bomb):
    write_metadata(Path(savepoint), bomb)
    assert "well" not in read_in_every_way(savepoint, environment)
    assert EXECUTED == []


def test_a_parquet_file_with_a_foreign_schema(savepoint, environment):
    """Arrow's own schema in a Parquet file may name an extension type; none is loaded for it."""

    def disguise(data):
        table = pq.read_table(io.BytesIO(data))
        field = table.schema.field("value").with_metadata(
            {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": BOMBS[-1]}
        )
        place = table.schema.get_field_index("value")
        schema = table.schema.set(place, field)
        sink = io.BytesIO()
        pq.write_table(table.cast(schema), sink)
        return sink.getvalue()

    forge(savepoint, disguise)
    read_in_every_way(savepoint, environment)
    assert EXECUTED == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "operators/../../x"])
def test_a_name_that_leads_out_of_the_savepoint(savepoint, environment, name):
    place = Path(savepoint)
    data = (place / "_metadata").read_bytes()
    metadata = json.loads(data[: data.rindex(b"\nsha256 ")])
    metadata["operators"][0]["subtasks"][0]["files"][0]["name"] = name
    write_metadata(place, json.dumps(metadata).encode())
    assert all("is not inside" in each for each in read_in_every_way(savepoint, environment))
    assert main(["savepoint", "dispose", savepoint]) == 1
    assert (place / "_metadata").exists()


def test_the_audit_hook_reports_nothing(savepoint, tmp_path):
    assert audited(lambda: pickle.loads(BOMBS[0])), "the auditor is deaf"
    EXECUTED.clear()
    for number, bomb in enumerate(BOMBS):
        forge(savepoint, lambda data, bomb=bomb: with_bombs(data, "value", bomb))
        found = audited(lambda number=number: [read(f"{tmp_path}/copy-{number}") for read in readers(savepoint)])
        assert found == []
    assert EXECUTED == []


def readers(path):
    """The ways to read a savepoint without a job, each with a place to write to."""

    def tables(_):
        for state in Savepoint(path).operator("keep").states():
            with pytest.raises(MillstreamError):
                state.to_arrow()

    def edit(target):
        with pytest.raises(MillstreamError):
            SavepointWriter.from_existing_savepoint(path).write(target)

    return tables, edit, lambda _: main(["state", "cat", path, "keep", "x"])


def test_forged_files_execute_code_without_protection(savepoint, environment):
    """Proves that the tests above would detect an execution."""
    forge(savepoint, lambda data: data)
    assert read_in_every_way(savepoint, environment) == ["well"] * 4
