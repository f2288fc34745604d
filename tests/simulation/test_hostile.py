"""Law 8: nothing from storage is executed, even with the right checksums."""

import dataclasses
import hashlib
import io
import json
import pickle

import pyarrow as pa
import pytest

from millstream.functions import KeyedProcessFunction
from millstream.job.job_status import JobStatus
from millstream.state import deltas
from millstream.state_descriptors.descriptors import MapStateDescriptor, ValueStateDescriptor
from millstream.times import Time
from millstream.types.factory import Types
from millstream.windows.assigners import TumblingEventTimeWindows
from millstream_chaos.samples.programs import Collect, one_split
from millstream_chaos.simulation import ROOT, Faults, Setup, World, find_operation, run

EXECUTED = []


class Remember(KeyedProcessFunction):
    """State without a type: what is stored are encoded objects."""

    def open(self, runtime_context):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.PICKLED_BYTE_ARRAY()))
        kinds = (Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY())
        self.seen = runtime_context.get_map_state(MapStateDescriptor("seen", *kinds))

    def process_element(self, value, ctx):
        yield value, self.last.value(), len(list(self.seen.keys()))
        self.last.update(value)
        self.seen.put(value[2], value)


def program(env):
    untyped = one_split(env).key_by(lambda value: value[0]).process(Remember())
    windows = TumblingEventTimeWindows.of(Time.milliseconds(60))
    return untyped.map(lambda value: value[0]).key_by(lambda value: value[0]).window(windows).process(Collect())


SETUP = Setup(program, epoch_records=5, options={"restart-strategy.type": "none"})


def detonate():
    EXECUTED.append("boom")


class Bomb:
    def __reduce__(self):
        return detonate, ()


PICKLES = [pickle.dumps(Bomb(), protocol) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]


@pytest.fixture
def world():
    """A job that died after its second checkpoint, which is the only one left."""
    EXECUTED.clear()
    pickle.loads(PICKLES[-1])
    assert EXECUTED == ["boom"], "the bomb is a dud"
    EXECUTED.clear()
    with World() as made:
        assert run(SETUP, made, Faults(storage=(find_operation(SETUP, "chk-2/_metadata", "/shared/"), "after"))).crashed
        made.disk.files.pop(f"{ROOT}/job/chk-1/_metadata", None)
        yield made


def read_metadata(world):
    data = world.disk.files[f"{ROOT}/job/chk-2/_metadata"]
    return json.loads(data[: data.rindex(b"\nsha256 ")])


def write_metadata(world, data):
    footer = b"\nsha256 %s\n" % hashlib.sha256(data).hexdigest().encode()
    world.disk.files[f"{ROOT}/job/chk-2/_metadata"] = data + footer


def forge(world, change):
    """Replace every state file by what `change` makes of it, with the right size and checksum in the metadata."""
    metadata = read_metadata(world)
    for operator in metadata["operators"]:
        for subtask in operator["subtasks"]:
            for handle in subtask["files"]:
                start, packed = handle.pop("offset", 0), handle.pop("pack", handle["name"])
                before = world.disk.files[f"{ROOT}/{packed}"][start : start + handle["size"]]
                world.disk.files[f"{ROOT}/{handle['name']}"] = made = change(before)
                handle["size"], handle["sha256"] = len(made), hashlib.sha256(made).hexdigest()
    write_metadata(world, json.dumps(metadata).encode())


def run_to_end(world):
    life = run(SETUP, world)
    assert EXECUTED == [], "something from storage was executed"
    assert life.status is JobStatus.FAILED
    assert life.failure is not None
    return str(life.failure)


@pytest.mark.parametrize("bomb", PICKLES, ids=range(len(PICKLES)))
def test_a_pickle_as_metadata(world, bomb):
    write_metadata(world, bomb)
    assert "no checkpoint of job job is intact" in run_to_end(world)


@pytest.mark.parametrize("field", ["sources", "committables", "operators", "format", "epoch", "processing_time"])
def test_a_pickle_in_a_field_of_the_metadata(world, field):
    metadata = read_metadata(world)
    metadata[field] = PICKLES[0].decode("latin-1")
    write_metadata(world, json.dumps(metadata).encode())
    assert "the checkpoint metadata is damaged or not written by millstream" in run_to_end(world)


@pytest.mark.parametrize("bomb", PICKLES, ids=range(len(PICKLES)))
def test_a_pickle_as_a_state_file(world, bomb):
    forge(world, lambda _: bomb)
    assert "not a state file" in run_to_end(world)


@pytest.mark.parametrize("column", ["namespace", "key", "value"])
@pytest.mark.parametrize("bomb", [PICKLES[0], PICKLES[-1]], ids=["oldest", "newest"])
def test_a_pickle_in_a_column_of_a_state_file(world, bomb, column):
    planted = []
    forge(world, lambda data: with_bombs(data, column, bomb, planted))
    assert sum(planted) > 0
    assert "none of its code was executed" in run_to_end(world)


def with_bombs(data, column, bomb, planted):
    """The state file with `bomb` in every cell of a column that holds encoded objects."""
    size = int.from_bytes(data[4:8], "little")
    header, at, streams = json.loads(data[8 : 8 + size]), 8 + size, []
    for entry in header:
        table = pa.ipc.open_stream(data[at : at + entry["length"]]).read_all()
        at += entry["length"]
        index = table.schema.get_field_index(column)
        kind = table.schema.field(index).type
        if kind in (pa.binary(), pa.large_binary()):
            table = table.set_column(index, column, pa.array([bomb] * len(table), type=kind))
            planted.append(len(table))
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        entry["length"] = len(sink.getvalue())
        streams.append(sink.getvalue())
    text = json.dumps(header).encode()
    made = b"".join([b"MSD1", len(text).to_bytes(4, "little"), text, *streams])
    assert deltas.describe(made)
    return made


def test_a_name_that_leads_out_of_the_storage(world):
    metadata = read_metadata(world)
    metadata["operators"][-1]["subtasks"][0]["files"].append(
        {"name": "../../etc/passwd", "size": 1, "sha256": "", "epoch": 1, "rows": 1, "base": False, "covers": []}
    )
    write_metadata(world, json.dumps(metadata).encode())
    assert "'../../etc/passwd' is not inside" in run_to_end(world)


def test_metadata_of_a_later_release_is_refused(world):
    metadata = read_metadata(world)
    metadata["format"] = 99
    write_metadata(world, json.dumps(metadata).encode())
    assert "has format 99" in run_to_end(world)


def test_forged_files_execute_code_without_protection(world):
    """Proves that the tests above would detect an execution."""
    forge(world, lambda data: data)
    assert run(dataclasses.replace(SETUP), world).status is JobStatus.FINISHED
