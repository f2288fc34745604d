"""Checkpoints and savepoints on an object store: fsspec's store in memory, where an object is visible when it is
complete."""

from __future__ import annotations

import time

import fsspec
import pyarrow as pa
import pyarrow.fs
import pytest
from fsspec.implementations.arrow import ArrowFSWrapper

from millstream.checkpoint.storage import CheckpointStorage
from millstream.checkpoint.storage_errors import CheckpointTaken, NoConditionalWrites
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.staging import Staged, StagedOutputLost, Staging
from millstream.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import UserError
from millstream.files import remote
from millstream.files.errors import CorruptFile, MissingFile, OutsideRoot, StorageFailure
from millstream.files.frames import frame_record
from millstream.files.remote import NoObjectStore, ObjectStore
from millstream.testing.feed import Feed
from millstream_chaos.outputs.visible_output import VisibleOutput, read_visible_rows
from millstream_chaos.storage.memory_files import MemoryFileSystem, Named

ROOT = "memory://bucket/checkpoints"
_stumbled: list[int] = []


@pytest.fixture(autouse=True)
def objects():
    """The objects of the store, by name; none at first."""
    store = fsspec.filesystem("memory")
    store.rm("/", recursive=True)
    _stumbled.clear()
    return lambda: sorted(store.find("/"))


def test_stored_files_are_found_by_name_and_no_others(objects):
    storage = CheckpointStorage(ROOT, "job")
    storage.check_writable()
    made = storage.write("shared/a", b"state")
    storage.publish(1, b"{}")
    assert objects() == ["/bucket/checkpoints/job/chk-1/_metadata", "/bucket/checkpoints/job/shared/a"]
    assert storage.read(made) == b"state"
    assert storage.list_checkpoints() == [1]
    assert storage.read_metadata(1) == b"{}"
    storage.delete_checkpoint(1)
    storage.delete(made.name)
    assert storage.list_checkpoints() == []
    assert objects() == []
    with pytest.raises(MissingFile):
        storage.read(made)
    with pytest.raises(OutsideRoot):
        storage.check_name("../other/secret")


def test_only_one_of_two_drivers_creates_a_checkpoint():
    first, second = CheckpointStorage(ROOT, "job"), CheckpointStorage(ROOT, "job")
    first.publish(1, b"first")
    with pytest.raises(CheckpointTaken):
        second.publish(1, b"second")
    assert second.read_metadata(1) == b"first"


def test_a_store_that_ignores_conditions_is_refused(monkeypatch, objects):
    store = fsspec.filesystem("memory")
    write = store.pipe_file
    monkeypatch.setattr(store, "pipe_file", lambda name, data, mode="overwrite", **_: write(name, data))
    with pytest.raises(
        NoConditionalWrites, match=r"created only if absent.*hint: use a store that honours If-None-Match"
    ):
        CheckpointStorage(ROOT, "job").check_writable()
    assert objects() == []


def test_appending_to_a_log_writes_one_record_and_rereading_fetches_nothing(monkeypatch, objects):
    store = fsspec.filesystem("memory")
    written, read = [], []
    write, fetch = store.pipe_file, store.cat_file
    monkeypatch.setattr(
        store, "pipe_file", lambda name, data, **how: written.append(len(data)) or write(name, data, **how)
    )
    monkeypatch.setattr(store, "cat_file", lambda name, **how: read.append(name) or fetch(name, **how))
    storage = CheckpointStorage(ROOT, "job")
    for number in range(50):
        storage.append_log("epochs.log", b"%d" % number)
    assert sum(written) < 50 * 30
    storage.read_log("epochs.log")
    read.clear()
    assert len(storage.read_log("epochs.log")) == 50
    assert read == []
    storage.truncate_log("epochs.log", [b"48", b"49"])
    assert len(objects()) == 3, "what was dropped is deleted"
    assert CheckpointStorage(ROOT, "job").read_log("epochs.log") == [b"48", b"49"]
    storage.delete_log("epochs.log")
    assert objects() == []


def test_a_log_that_an_earlier_version_wrote_as_one_object_is_continued(objects):
    fsspec.filesystem("memory").pipe_file(
        "/bucket/checkpoints/job/epochs.log", frame_record(0, b"0") + frame_record(17, b"1")
    )
    storage = CheckpointStorage(ROOT, "job")
    storage.append_log("epochs.log", b"2")
    assert CheckpointStorage(ROOT, "job").read_log("epochs.log") == [b"0", b"1", b"2"]
    storage.truncate_log("epochs.log", [b"2"])
    assert CheckpointStorage(ROOT, "job").read_log("epochs.log") == [b"2"]


def test_a_damaged_record_is_named():
    CheckpointStorage(ROOT, "job").append_log("epochs.log", b"plan")
    fsspec.filesystem("memory").pipe_file(f"/bucket/checkpoints/job/epochs.log.d/{0:020d}", b"no frame")
    with pytest.raises(CorruptFile, match=r"epochs\.log\.d/0+ is damaged"):
        CheckpointStorage(ROOT, "job").read_log("epochs.log")


def test_a_log_grows_and_is_truncated(objects):
    storage = CheckpointStorage(ROOT, "job")
    for number in range(3):
        storage.append_log("epochs.log", b"%d" % number)
    assert CheckpointStorage(ROOT, "job").read_log("epochs.log") == [b"0", b"1", b"2"]
    storage.truncate_log("epochs.log", [b"2"])
    storage.append_log("epochs.log", b"3")
    assert storage.read_log("epochs.log") == [b"2", b"3"]
    storage.truncate_log("epochs.log", [b"other"])
    assert CheckpointStorage(ROOT, "job").read_log("epochs.log") == [b"other"]
    assert len(objects()) == 2


def test_a_copy_is_visible_only_under_its_final_name(tmp_path, monkeypatch):
    """An object is written under its final name only: a crash would leave a copy under another name."""
    (tmp_path / "staged").write_bytes(b"rows")
    seen = []

    class Watched:
        """Arrow's client of a store, as fsspec uses it."""

        type_name = "watched"

        def __getattr__(self, name):
            seen.append((name, sorted(each.name for each in tmp_path.iterdir())))
            return getattr(pyarrow.fs.LocalFileSystem(), name)

    monkeypatch.setitem(remote._clients, "s3", ArrowFSWrapper(Watched()))
    ObjectStore("s3").copy_file(str(tmp_path / "staged"), str(tmp_path / "part-0"))
    assert (tmp_path / "part-0").read_bytes() == b"rows"
    assert {name for _, names in seen for name in names} <= {"staged", "part-0"}, seen


def test_errors_of_the_store_are_reported(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("no such bucket")

    monkeypatch.setattr(fsspec.filesystem("memory"), "pipe_file", refuse)
    with pytest.raises(StorageFailure, match="no such bucket"):
        CheckpointStorage(ROOT, "job").write("shared/a", b"state")


class Stumble(MapFunction):
    """Fails once, at a record after a checkpoint."""

    def map(self, value):
        if value[1] == 30 and not _stumbled:
            _stumbled.append(1)
            raise ValueError("stumbled")
        return value


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


@pytest.mark.usefixtures("inline_engine")
def test_a_job_fails_recovers_stops_and_continues_from_its_savepoint(objects):
    disk = MemoryFileSystem()
    disk.make_dirs("/out")
    files = Named.of(disk)

    def start(feed, parallelism, **more):
        configuration = Configuration()
        settings = {
            "execution.checkpointing.dir": ROOT,
            "execution.checkpointing.interval": "1 ms",
            "millstream.epoch.max-records": "8",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.delay": "1 ms",
            "parallelism.default": str(parallelism),
        }
        for name, value in (settings | more).items():
            configuration.set_string(name, value)
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        values = env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").uid("feed").map(Stumble())
        counted = values.key_by(lambda value: value[0], Types.STRING()).process(Count()).uid("count")
        counted.sink_to(VisibleOutput(files, "/out")).uid("out")
        return env.execute_async("counting")

    feed = Feed.of(*((f"k{number % 4}", number) for number in range(40)))
    client, deadline = start(feed, 2), time.monotonic() + 120
    while len(read_visible_rows(disk, "/out")) < 40 and time.monotonic() < deadline:
        time.sleep(0.02)
    saved = client.stop_with_savepoint(False, "memory://bucket/savepoints").result(120)
    assert _stumbled == [1]
    assert saved.startswith("memory://bucket/savepoints/savepoint-")
    feed.give(*((f"k{number % 4}", number) for number in range(40, 60))).close()
    start(feed, 3, **{"execution.state-recovery.path": saved}).get_job_execution_result().result(120)
    assert read_visible_rows(disk, "/out") == sorted(str((f"k{number % 4}", number // 4 + 1)) for number in range(60))
    assert {name.split("/")[2] for name in objects()} == {"savepoints"}  # jobs that have ended keep no checkpoints
    files.unregister()


def test_a_store_that_shows_incomplete_files_is_refused():
    with pytest.raises(NoObjectStore, match="hdfs://"):
        CheckpointStorage("hdfs://name/checkpoints", "job")


def test_messages_for_kafka_are_staged_beside_the_checkpoints(objects):
    context = WriterContext("job", "sink", 0, 1, 1, "a", 0, storage=f"{ROOT}/job")
    staging, messages = Staging(), Messages("topic", pa.array([b"one", b"two"]))
    file = staging.create(context, "id")
    file.append(messages)
    assert objects() == []  # it is visible when it is complete
    (staged,) = map(Staged.from_json, [each.to_json() for each in file.finish()])
    assert objects() == ["/bucket/checkpoints/job/staged/job-sink@1@0-a"]
    assert [each.values.to_pylist() for each in staging.read(staged)] == [[b"one", b"two"]]
    staging.remove(staged)
    assert objects() == []
    with pytest.raises(StagedOutputLost):
        list(staging.read(staged))


def test_operations_that_need_a_directory_are_refused():
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", ROOT)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    with pytest.raises(UserError, match="memory://"):
        env.socket_text_stream("127.0.0.1", 1)
