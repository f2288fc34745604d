"""Poison in whole jobs: the job fails and names the record, or goes on and counts, or keeps the record beside."""

import pytest

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import MapFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import (
    BucketAssigner,
    FileCompactor,
    FileCompactStrategy,
    FileSink,
    FileSource,
    ParquetFiles,
    StreamFormat,
)
from millstream.datastream.formats.decoding import DEAD_LETTERS, Decode, decode
from millstream.datastream.formats.parquet import ParquetBulkWriters
from millstream.errors import UserError
from millstream.formats import format_named
from millstream.testing.harness import OperatorHarness
from millstream.types.row import Row

KIND = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
COUNT, BAD = 5000, range(7, 5000, 20)
LINES = [b'{"id": %d' % n if n in BAD else b'{"id": %d, "name": "n"}' % n for n in range(COUNT)]
GOOD = [n for n in range(COUNT) if n not in BAD]


@pytest.fixture
def env(inline_engine):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)


def lines(env, path):
    raw = StreamFormat.lines_of(format_named("raw", BYTES))
    source = FileSource.for_record_stream_format(raw, str(path)).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")


def test_a_job_keeps_dead_letters(env, tmp_path):
    (tmp_path / "f").write_bytes(b"\n".join(LINES))
    decoded = decode(lines(env, tmp_path), format_named("json", KIND, {"on-error": "dead-letter"}))
    letters = decoded.get_side_output(DEAD_LETTERS)
    both = decoded.map(lambda row: ("good", row.id)).union(letters.map(lambda row: ("bad", row.data, bool(row.reason))))
    with both.execute_and_collect() as found:
        found = list(found)
    assert sorted(each[1] for each in found if each[0] == "good") == GOOD
    assert sorted(each[1:] for each in found if each[0] == "bad") == sorted((LINES[n], True) for n in BAD)


@pytest.mark.parametrize("name", ["decoding", "the source"])
def test_a_job_fails_and_names_the_record(env, tmp_path, name):
    (tmp_path / "f").write_bytes(b"\n".join(LINES))
    made = format_named("json", KIND)
    if name == "decoding":
        stream = decode(lines(env, tmp_path), made)
    else:
        source = FileSource.for_record_stream_format(StreamFormat.lines_of(made), str(tmp_path)).build()
        stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    with pytest.raises(UserError, match=r'\{"id": 7'), stream.execute_and_collect() as found:
        list(found)


def test_a_job_skips_bad_records(env, tmp_path):
    (tmp_path / "f").write_bytes(b"\n".join(LINES))
    lenient = format_named("json", KIND, {"on-error": "skip"})
    source = FileSource.for_record_stream_format(StreamFormat.lines_of(lenient), str(tmp_path)).build()
    with env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").execute_and_collect() as found:
        assert sorted(row.id for row in found) == GOOD


@pytest.mark.parametrize(("policy", "letters"), [("skip", 0), ("dead-letter", len(BAD))])
def test_skipped_records_are_counted(policy, letters):
    made = format_named("json", KIND, {"on-error": policy})
    options = {"input_types": [BYTES], "side_outputs": [DEAD_LETTERS]}
    with OperatorHarness(lambda stream: stream.process(Decode(made), KIND), **options) as harness:
        harness.process_all(LINES)
        assert harness.counter("user.numRecordsSkipped") == len(BAD)
        assert len(harness.values()) == len(GOOD)
        assert len(harness.side_output(DEAD_LETTERS)) == letters


class FailsOnce(MapFunction):
    """Fails when it first sees a record; a file remembers that it did."""

    def __init__(self, at, mark):
        self._at, self._mark = at, mark

    def map(self, value):
        if value.id == self._at and not self._mark.exists():
            self._mark.write_text("failed")
            raise ValueError("the world is wrong")
        return value


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("store", ["local", "memory"])
def test_each_record_is_in_one_file_after_a_failure(env, tmp_path, store, compact):
    rows = [Row(id=number, name="n") for number in range(3000)]
    source = tmp_path / "in.json"
    source.write_bytes(b"\n".join(format_named("json", KIND).encode(rows)))
    base = str(tmp_path / "out") if store == "local" else f"memory://{tmp_path.name}{compact}"
    configuration = Configuration()
    configuration.set_string("restart-strategy.type", "fixed-delay")
    configuration.set_string("restart-strategy.fixed-delay.attempts", "3")
    configuration.set_string("restart-strategy.fixed-delay.delay", "1 ms")
    configuration.set_string("millstream.epoch.max-records", "100")
    env.configure(configuration)
    env.enable_checkpointing(10)
    lines = StreamFormat.lines_of(format_named("json", KIND))
    stream = env.from_source(
        FileSource.for_record_stream_format(lines, str(source)).build(), WatermarkStrategy.no_watermarks(), "lines"
    )
    builder = FileSink.for_bulk_format(base, ParquetBulkWriters.for_row_type(KIND))
    builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    if compact:
        strategy = FileCompactStrategy.builder().enable_compaction_on_checkpoint(3).build()
        builder.enable_compact(strategy, FileCompactor.record_wise_file_compactor())
    stream.map(FailsOnce(2000, tmp_path / "mark"), KIND).sink_to(builder.build())
    env.execute()
    assert (tmp_path / "mark").exists()
    written = FileSource.for_bulk_file_format(ParquetFiles(KIND), base).build()
    with env.from_source(written, WatermarkStrategy.no_watermarks(), "written").execute_and_collect() as found:
        assert sorted(row.id for row in found) == list(range(3000))
