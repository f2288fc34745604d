"""Laws of the file sink on every kind of file system, for rows and bulk formats, with and without compaction."""

import io
import json
import pickle

import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from reading import everything, values
from stores import Crash, DyingFiles, ObjectStore

from millstream.connector.serialization_schema import Encoder
from millstream.connector.sink import WriterContext
from millstream.connector.source import Budget
from millstream.connectors.files import (
    AvroFiles,
    AvroWriterFactory,
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    LineWriterFactory,
    OrcFiles,
    OrcWriterFactory,
    OutputFileConfig,
    ParquetFiles,
    ParquetWriterFactory,
    RollingPolicy,
    StreamFormat,
)
from millstream.connectors.files import sink as sinks
from millstream.connectors.files.commit import OutputDamaged, OutputLost
from millstream.connectors.files.paths import FileChanged, OutputNotAtomic, check_output_scheme
from millstream.connectors.files.rolling import BadOutputFile
from millstream.files import remote
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.remote import RemoteFileSystem, get_file_system
from millstream.formats import FormatType, avro_schemas, format_named
from millstream.types.factory import Types
from millstream.types.row import Row

KIND = Types.ROW_NAMED(["k", "v"], [Types.STRING(), Types.LONG()])
SCHEMA = avro_schemas.record_schema(FormatType.of(KIND))
FACTORIES = {
    "parquet": ParquetWriterFactory(KIND),
    "orc": OrcWriterFactory(KIND),
    "avro": AvroWriterFactory(SCHEMA, FormatType.of(KIND)),
    "csv": LineWriterFactory(KIND, format_named("csv", KIND), head=b"k,v"),
}


class ByKey(BucketAssigner):
    def get_bucket_id(self, element, context):
        return element.k


@pytest.fixture(params=["local", "memory", "objects"])
def store(request, tmp_path):
    """A base path on each kind of file system."""
    if request.param == "local":
        return str(tmp_path / "out")
    ObjectStore.objects.clear()
    return f"{request.param}://{tmp_path.name}/out"


def visible_files(base):
    """The files that a reader sees, those not hidden: name and bytes."""
    files = get_file_system(base)
    found = {}
    if files.exists(base):
        for folder, _, names in files.walk(base):
            below = folder.removeprefix(base).strip("/")
            if ".staging" not in below:
                for name in names:
                    with files.open(f"{folder}/{name}") as stream:
                        found[f"{below}/{name}".strip("/")] = stream.read()
    return found


def hidden_files(base):
    files = get_file_system(base)
    walked = files.walk(f"{base}/.staging") if files.exists(f"{base}/.staging") else ()
    return [name for folder, _, names in walked for name in names if not folder.endswith("/commits")]


def rows_in(base):
    """The records of all visible files in any format."""
    found = []
    for name, data in visible_files(base).items():
        if name.endswith(".parquet"):
            found += [Row(**row) for row in pq.read_table(io.BytesIO(data)).to_pylist()]
        elif name.endswith(".txt"):
            found += [Row(k=line[0], v=int(line[1:])) for line in data.decode().splitlines()]
    return sorted(found, key=lambda row: (row.k, row.v))


class Lines(Encoder):
    def encode(self, element, stream):
        stream.write(f"{element.k}{element.v}\n".encode())


def sink_to(base, kind="rows", compact=None, partition=None):
    if kind == "rows":
        builder = FileSink.for_row_format(base, Lines()).with_output_file_config(OutputFileConfig("part", ".txt"))
    else:
        builder = FileSink.for_bulk_format(base, FACTORIES[kind])
        builder.with_output_file_config(OutputFileConfig("part", f".{kind}"))
    builder.with_bucket_assigner(ByKey())
    if compact is not None:
        compactor = FileCompactor.concat_file_compactor()
        builder.enable_compact(compact, compactor if kind == "rows" else FileCompactor.record_wise_file_compactor())
    if partition is not None:
        builder.with_partition_commit(partition)
    return pickle.loads(pickle.dumps(builder.build()))


def staged(sink, epoch, rows, subtask=0, attempt="0-1.1", now=0):
    writer = sink.create_writer(WriterContext("job", "op", subtask, 2, epoch, attempt, now))
    try:
        writer.write(rows, None)
        return json.loads(json.dumps(writer.prepare_commit()))
    finally:
        writer.close()


def some_rows(epoch, subtask):
    return [Row(k=key, v=epoch * 100 + subtask * 10 + n) for key in "ab" for n in range(2)]


def work(sink):
    """Two checkpoints of two epochs each."""
    made, rows = {}, []
    for checkpoint in (1, 2):
        made[checkpoint] = []
        for epoch in (2 * checkpoint, 2 * checkpoint + 1):
            for subtask in (0, 1):
                rows += some_rows(epoch, subtask)
                made[checkpoint] += staged(sink, epoch, some_rows(epoch, subtask), subtask)
    return made, sorted(rows, key=lambda row: (row.k, row.v))


@pytest.mark.parametrize("kind", ["rows", "parquet"])
def test_output_is_visible_once_after_its_commit(store, kind):
    sink = sink_to(store, kind)
    made, rows = work(sink)
    assert visible_files(store) == {}
    for _ in range(2):
        for checkpoint in made:
            sink.create_committer().commit(checkpoint, made[checkpoint])
    sink.create_committer().finish()
    assert rows_in(store) == rows
    assert len(visible_files(store)) == 8  # one for each checkpoint, bucket and subtask
    assert hidden_files(store) == []


COMPACT = {
    "none": None,
    "often": FileCompactStrategy.builder().enable_compaction_on_checkpoint(1).build(),
    "late": FileCompactStrategy.builder().set_size_threshold(1 << 30).build(),
}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("kind", "compact"), [("rows", "none"), ("rows", "often"), ("rows", "late"), ("parquet", "often")]
)
@pytest.mark.parametrize("place", ["local", "objects"])
def test_a_crash_between_any_two_steps_does_not_change_the_output(tmp_path, place, kind, compact, after, monkeypatch):
    ObjectStore.objects.clear()
    for step in range(1, 200):
        base = f"{tmp_path}/{step}" if place == "local" else f"objects://{step}"
        sink = sink_to(base, kind, COMPACT[compact])
        rows = [Row(k="a", v=number) for number in range(3)]
        first, *second = (staged(sink, row.v, [row]) for row in rows)
        sink.create_committer().commit(1, first)
        both = [each for made in second for each in made]
        dying = DyingFiles(get_file_system(base), step, after)
        monkeypatch.setattr(sinks, "get_file_system", lambda path, dying=dying: dying)
        try:
            committer = sink.create_committer()
            committer.commit(2, both)
            committer.finish()
            crashed = False
        except Crash:
            crashed = True
        monkeypatch.undo()
        assert len(set(map(str, rows_in(base)))) == len(rows_in(base))
        for _ in range(2):
            committer = sink.create_committer()
            committer.commit(2, both)
        committer.finish()
        assert rows_in(base) == rows, step
        assert hidden_files(base) == [], step
        if not crashed:
            assert step > 3
            return
    raise AssertionError("the commit never came to its end")


@pytest.mark.parametrize("kind", ["rows", "parquet"])
def test_files_are_pending_until_they_are_compacted(store, kind):
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
    sink = sink_to(store, kind, strategy)
    seen = []
    for checkpoint in range(1, 7):
        committer = sink.create_committer()
        committer.commit(checkpoint, staged(sink, checkpoint, some_rows(checkpoint, 0)))
        seen.append(len(visible_files(store)))
    assert seen == [0, 0, 2, 2, 2, 4]
    assert len(rows_in(store)) == 24
    assert all("compacted-part-" in name for name in visible_files(store))
    committer = sink.create_committer()
    committer.commit(7, staged(sink, 7, some_rows(7, 0)))
    assert len(rows_in(store)) == 24
    sink.create_committer().finish()
    assert len(rows_in(store)) == 24, "who has committed nothing does not know whether all is settled"
    committer.finish()
    assert len(rows_in(store)) == 28


def test_pending_files_of_a_failed_commit_are_not_visible_before_its_repetition(monkeypatch):
    """On an object store, a pending file may exist beside the staged file it was copied from."""
    ObjectStore.objects.clear()
    sink = sink_to("objects://failed", "rows", COMPACT["late"])
    made = staged(sink, 1, [Row(k="a", v=1)])

    def broken(self, path):
        raise OSError(5, "the store says no")

    monkeypatch.setattr(ObjectStore, "rm_file", broken)
    committer = sink.create_committer()
    with pytest.raises(ConnectorStorageFailure):
        committer.commit(1, made)
    monkeypatch.undo()
    committer.finish()
    sink.create_committer().finish()
    committer = sink.create_committer()
    committer.commit(1, made)
    committer.finish()
    assert rows_in("objects://failed") == [Row(k="a", v=1)]


def list_all_files(base):
    files = get_file_system(base)
    return sorted(f"{folder}/{name}" for folder, _, names in files.walk(base) for name in names)


@pytest.mark.parametrize("partition", [None, 0])
def test_a_driver_that_was_replaced_changes_nothing_when_it_closes(store, partition):
    """The new leader may be between any two steps of its own commit."""
    strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
    sink = sink_to(store, "rows", strategy, partition)
    old, new = sink.create_committer(), sink.create_committer()
    old.commit(1, staged(sink, 1, some_rows(1, 0)))
    again = staged(sink, 2, some_rows(2, 0))
    old.commit(2, again)
    new.commit(2, again)
    before = list_all_files(store)
    old.close()
    assert list_all_files(store) == before
    new.commit(3, staged(sink, 3, some_rows(3, 0), attempt="1-1.1"))
    assert len(rows_in(store)) == 12
    assert sum("part-" in name for name in visible_files(store)) == 2  # of two buckets, each row in one file


def test_a_driver_that_was_replaced_leaves_the_directories(tmp_path):
    """The new leader may be about to write into them."""
    sink = sink_to(str(tmp_path), "rows", COMPACT["often"])
    committer = sink.create_committer()
    committer.commit(1, staged(sink, 1, some_rows(1, 0)))
    committer.close()
    assert (tmp_path / ".staging/pending").is_dir()
    committer.finish()
    assert not (tmp_path / ".staging").exists()


def test_files_are_compacted_once_they_are_large(store):
    sink = sink_to(store, "rows", FileCompactStrategy.builder().set_size_threshold(20).build())
    counts = []
    for checkpoint in range(1, 5):
        sink.create_committer().commit(checkpoint, staged(sink, checkpoint, some_rows(checkpoint, 0)))
        counts.append(len(rows_in(store)))
    assert counts == [0, 8, 8, 16]  # a file has 10 bytes


def test_a_compactor_must_fit_the_files(tmp_path):
    with pytest.raises(BadOutputFile, match="without a condition"):
        FileCompactStrategy.builder().build()
    delimited = FileCompactor.concat_file_compactor(b"--\n")
    whole = io.BytesIO()
    delimited.merge(None)([io.BytesIO(b"a\n"), io.BytesIO(b"b\n")], whole)
    assert whole.getvalue() == b"a\n--\nb\n"
    identical = FileCompactor.identical_file_compactor()
    builder = FileSink.for_row_format(str(tmp_path), Lines()).with_bucket_assigner(ByKey())
    sink = builder.enable_compact(COMPACT["often"], identical).build()
    committer = sink.create_committer()
    committer.commit(1, staged(sink, 1, some_rows(1, 0)) + staged(sink, 1, some_rows(1, 1), 1))
    assert len(visible_files(str(tmp_path))) == 4
    assert builder.disable_compact().build().compaction is None


@pytest.mark.parametrize("kind", FACTORIES)
def test_bulk_files_of_epochs_become_one_file_per_checkpoint(tmp_path, kind):
    sink = sink_to(str(tmp_path), kind)
    made = [each for epoch in range(1, 6) for each in staged(sink, epoch, some_rows(epoch, 0))]
    sink.create_committer().commit(1, made)
    first, second = sorted(visible_files(str(tmp_path)))
    assert first.startswith("a/part-")
    assert second.startswith("b/part-")
    assert first.endswith(f"-0-1.{kind}")
    readers = {"parquet": ParquetFiles(KIND), "orc": OrcFiles(KIND), "avro": AvroFiles(KIND)}
    if kind in readers:
        source = FileSource.for_bulk_file_format(readers[kind], str(tmp_path)).build()
        found = everything(source)
        assert sorted(map(str, found)) == sorted(str(row) for epoch in range(1, 6) for row in some_rows(epoch, 0))
    else:
        assert visible_files(str(tmp_path))[first].decode().splitlines()[:2] == ["k,v", "a,100"]


def test_a_bulk_format_is_finished_by_checkpoints_only(tmp_path):
    builder = FileSink.for_bulk_format(str(tmp_path), FACTORIES["parquet"])
    builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
    with pytest.raises(BadOutputFile, match="OnCheckpointRollingPolicy"):
        builder.with_rolling_policy(RollingPolicy.default_rolling_policy())


def test_a_complete_bucket_has_a_success_file(store):
    sink = sink_to(store, partition=0)
    sink.create_committer().commit(1, staged(sink, 1, [Row(k="a", v=1)]))
    assert sorted(visible_files(store)) == [
        "a/_SUCCESS",
        next(name for name in sorted(visible_files(store)) if "part" in name),
    ]
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), store).build()
    assert everything(source) == ["a1"]


def test_a_bucket_is_complete_after_its_delay(store):
    sink = sink_to(store, partition=1000)
    marks = []
    for checkpoint, (key, now) in enumerate([("a", 500), ("a", 1400), ("b", 1500), ("b", 2499), ("c", 2500)], 1):
        sink.create_committer().commit(checkpoint, staged(sink, checkpoint, [Row(k=key, v=1)], now=now))
        marks.append([name for name in sorted(visible_files(store)) if "_SUCCESS" in name])
    assert marks == [[], [], ["a/_SUCCESS"], ["a/_SUCCESS"], ["a/_SUCCESS", "b/_SUCCESS"]]


def test_a_bucket_with_pending_files_is_not_complete(store):
    sink = sink_to(store, compact=FileCompactStrategy.builder().enable_compaction_on_checkpoint(2).build(), partition=0)
    sink.create_committer().commit(1, staged(sink, 1, [Row(k="a", v=1)]))
    assert visible_files(store) == {}
    sink.create_committer().commit(2, staged(sink, 2, [Row(k="a", v=2)]))
    assert sorted(name.partition("-")[0] for name in visible_files(store)) == ["a/_SUCCESS", "a/compacted"]


def test_files_of_an_earlier_job_are_kept_and_lost_ones_are_reported(store):
    sink = sink_to(store)
    for attempt in ("1", "2"):
        sink.create_committer().commit(1, staged(sink, 1, [Row(k="a", v=1)], attempt=attempt))
    assert len(rows_in(store)) == 2
    (made,) = staged(sink, 2, [Row(k="a", v=2)])
    get_file_system(store).remove(f"{store}/{made['staged']}")
    with pytest.raises(OutputLost):
        sink.create_committer().commit(2, [made])
    (made,) = staged(sink, 3, [Row(k="a", v=2)])
    with get_file_system(store).writing(f"{store}/{made['staged']}") as stream:
        stream.write(b"x")
    with pytest.raises(OutputDamaged):
        sink.create_committer().commit(3, [made])


def test_files_are_read_from_any_store(store):
    files = get_file_system(store)
    for name, text in {"a.txt": "1\n2\n", "b/c.txt": "3\n" * 50, "_hidden": "no", ".dir/d": "no"}.items():
        with files.writing(f"{store}/{name}") as stream:
            stream.write(text.encode())
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), store).build()
    assert everything(source, 2, size=20) == ["1", "2", *["3"] * 50]
    parts = source.create_enumerator(1).plan(Budget(1000, 1000, 0))
    with files.writing(f"{store}/a.txt") as stream:
        stream.write(b"4\n2\n")
    with pytest.raises(FileChanged):
        [values(source, part) for part in parts]


@pytest.mark.parametrize("scheme", ["smb", "dbfs", "ftp", "github", "http"])
def test_output_on_a_scheme_without_atomic_files_is_refused(scheme: str) -> None:
    with pytest.raises(OutputNotAtomic, match=f"{scheme}:// neither renames atomically"):
        check_output_scheme(f"{scheme}://host/out")


@pytest.mark.parametrize("path", ["/out", "s3://bucket/out", "hdfs://name/out", "sftp://host/out", "memory://out"])
def test_output_on_atomic_schemes_is_accepted(path: str) -> None:
    check_output_scheme(path)


def test_a_rename_that_the_server_refused_silently_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(MemoryFileSystem):
        """Refuses to rename without an error, as the client of WebHDFS does."""

        def mv(self, path1: str, path2: str, **_: object) -> None:
            """Do nothing."""

    monkeypatch.setitem(remote._clients, "webhdfs", Refusing(skip_instance_cache=True))
    files = RemoteFileSystem("webhdfs")
    with files.writing("memory://refusing/.staging/a") as stream:
        stream.write(b"x")
    with pytest.raises(OSError, match="did not rename"):
        files.rename_durably("memory://refusing/.staging/a", "memory://refusing/a")
