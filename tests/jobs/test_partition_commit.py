"""A partition is committed when its time range is over, not before, whatever fails in between."""

import datetime
from pathlib import Path

import pytest

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.common.serialization import Encoder
from millstream.common.watermark_strategy import TimestampAssigner
from millstream.connector.sink import WriterContext
from millstream.connectors.files import BucketAssigner, FileSink, PartitionCommit, PartitionTime
from millstream.connectors.files.buckets import BadBucket, BadTimePattern, DateTimeBucketAssigner
from millstream.connectors.files.partition_time import NoPartitionTime
from millstream.connectors.files.partitions import OPTIONS, BadPartitionCommit, PartitionCommitter
from millstream.connectors.files.rolling import BadOutputFile
from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.event_time.watermarks import MAX_WATERMARK

HOUR = 3_600_000


def millis(text):
    return int(datetime.datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)


@pytest.mark.parametrize(
    ("bucket", "how", "time"),
    [
        ("dt=2026-11-15/hour=10", {"pattern": "$dt $hour:00:00"}, "2026-11-15 10:00"),
        ("dt=2026-11-15/hour=10", {}, "2026-11-15"),
        ("y=2026/m=11/d=15", {"pattern": "$y-$m-$d"}, "2026-11-15"),
        ("at=15.11.2026 08%3A30", {"formatter": "dd.MM.yyyy HH:mm"}, "2026-11-15 08:30"),
        ("2026/11/15", {"formatter": "yyyy/MM/dd"}, "2026-11-15"),
        ("dt=2026-07-01", {"zone": "Europe/Berlin"}, "2026-06-30 22:00"),
        ("dt=2026-01-01/dtx=2", {"pattern": "$dt 0$dtx:00:00"}, "2026-01-01 02:00"),
    ],
)
def test_the_name_of_a_partition_contains_its_time(bucket, how, time):
    assert PartitionTime(**how).time_of(bucket) == millis(time)


def test_buckets_by_date_and_time_have_a_time():
    assert DateTimeBucketAssigner("yyyy-MM-dd--HH", "UTC").time_of("2026-11-15--10") == millis("2026-11-15 10:00")
    with pytest.raises(BadBucket):
        DateTimeBucketAssigner("yyyy-MM-dd--HH", "UTC").time_of("other")


@pytest.mark.parametrize(("bucket", "how"), [("dt=x", {}), ("", {}), ("dt=2026-01-01", {"pattern": "$day"})])
def test_a_name_without_a_time_is_refused(bucket, how):
    with pytest.raises(NoPartitionTime, match="has no time"):
        PartitionTime(**how).time_of(bucket)


@pytest.mark.parametrize("how", [{"formatter": "yyyy-QQ"}, {"zone": "Mars/Olympus"}])
def test_invalid_options_are_refused_before_the_job_starts(how):
    with pytest.raises(BadTimePattern):
        PartitionTime(**how)


def test_flinks_options_have_the_same_effect():
    policy = PartitionCommit.of_options(
        {
            "sink.partition-commit.policy.kind": "success-file",
            "sink.partition-commit.trigger": "partition-time",
            "sink.partition-commit.delay": "1 h",
            "sink.partition-commit.success-file.name": "_DONE",
            "sink.partition-commit.watermark-time-zone": "Asia/Shanghai",
            "partition.time-extractor.timestamp-pattern": "$dt $hour:00:00",
            "connector": "filesystem",
        }
    )
    assert policy == PartitionCommit(
        HOUR, "_DONE", "partition-time", PartitionTime("$dt $hour:00:00", None, "Asia/Shanghai")
    )
    assert PartitionCommit.of_options({"sink.partition-commit.delay": "1 h"}) is None
    assert "sink.partition-commit.trigger" in OPTIONS


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("sink.partition-commit.policy.kind", "metastore", BadPartitionCommit),
        ("sink.partition-commit.trigger", "sometimes", BadPartitionCommit),
        ("partition.time-extractor.kind", "custom", BadPartitionCommit),
        ("sink.partition-commit.delay", "soon", UserError),
        ("sink.partition-commit.success-file.name", "done", BadOutputFile),
    ],
)
def test_an_option_with_an_unknown_value_is_refused(option, value, error):
    with pytest.raises(error):
        PartitionCommit.of_options({"sink.partition-commit.policy.kind": "success-file", option: value})


class ByHour(BucketAssigner):
    def get_bucket_id(self, element, context):
        return f"dt=2026-11-15/hour={element:02d}"


def sink_in(base, **how):
    builder = FileSink.for_row_format(str(base), Encoder.simple_string_encoder()).with_bucket_assigner(ByHour())
    return builder.with_partition_commit(**how).build()


def marked(base):
    return sorted(int(path.parent.name[-2:]) for path in Path(base).rglob("_SUCCESS"))


def stage(sink, epoch, hours, now=0):
    writer = sink.create_writer(WriterContext("job", "op", 0, 1, epoch, "0-1", now))
    writer.write(hours, None)
    made = writer.prepare_commit()
    writer.close()
    return made


BEGIN = millis("2026-11-15")
BY_PARTITION = {"delay": HOUR, "trigger": "partition-time", "partition_time": PartitionTime("$dt $hour:00:00")}


def test_a_bucket_is_complete_when_the_watermark_has_passed_it_and_the_delay(tmp_path):
    sink = sink_in(tmp_path, **BY_PARTITION)
    committer = sink.create_committer()
    committer.commit(1, stage(sink, 1, [0, 1, 2], now=BEGIN + 100 * HOUR))
    seen = [marked(tmp_path)]
    for watermark in (BEGIN, BEGIN + HOUR, BEGIN + HOUR + 1, BEGIN + 2 * HOUR + 1):
        committer.reached(watermark, BEGIN + 100 * HOUR)
        seen.append(marked(tmp_path))
    assert seen == [[], [], [], [0], [0, 1]]
    later = sink.create_committer()  # of a driver that has just started: it knows the pending partitions
    later.reached(BEGIN + 3 * HOUR, 0)
    assert marked(tmp_path) == [0, 1]
    later.reached(BEGIN + 3 * HOUR + 1, 0)
    assert marked(tmp_path) == [0, 1, 2]
    (tmp_path / "dt=2026-11-15/hour=00/_SUCCESS").unlink()
    later.commit(2, stage(sink, 2, [0]))  # late, so complete again
    assert marked(tmp_path) == [0, 1, 2]


def test_the_end_of_the_input_completes_every_bucket(tmp_path):
    for number, how in enumerate([BY_PARTITION, {"delay": HOUR}]):
        base = tmp_path / str(number)
        sink = sink_in(base, **how)
        committer = sink.create_committer()
        committer.commit(1, stage(sink, 1, [3], now=BEGIN))
        committer.reached(BEGIN, BEGIN)
        assert marked(base) == []
        committer.reached(MAX_WATERMARK, BEGIN)
        committer.finish()
        assert marked(base) == [3]
        assert not (base / ".staging").exists()


def test_buckets_are_completed_without_new_records_too(tmp_path):
    sink = sink_in(tmp_path, delay=HOUR)
    committer = sink.create_committer()
    committer.commit(1, stage(sink, 1, [3], now=BEGIN))
    committer.reached(0, BEGIN + HOUR - 1)
    assert marked(tmp_path) == []
    committer.reached(0, BEGIN + HOUR)
    assert marked(tmp_path) == [3]


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return BEGIN + value * HOUR


@pytest.mark.usefixtures("inline_engine")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_no_bucket_is_complete_before_its_last_record(tmp_path, parallelism, monkeypatch):
    """Whenever the committer gets the watermark, the hours it has marked as complete are complete."""
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.interval", "1 ms")
    configuration.set_string("millstream.epoch.max-records", "5")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    history = []
    reached = PartitionCommitter.reached

    def told(committer, watermark, now):
        reached(committer, watermark, now)
        rows = [int(line) for path in tmp_path.rglob("part-*") for line in path.read_text().split()]
        history.append((marked(tmp_path), rows))

    monkeypatch.setattr(PartitionCommitter, "reached", told)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
    hours = [hour for hour in range(8) for _ in range(6)]
    events = env.from_collection(hours, Types.INT()).assign_timestamps_and_watermarks(strategy)
    events.rebalance().sink_to(sink_in(tmp_path, **BY_PARTITION))
    env.execute()
    assert history[-1] == (list(range(8)), history[-1][1])
    assert sorted(history[-1][1]) == hours
    for complete, rows in history:
        assert all(rows.count(hour) == 6 for hour in complete)
    assert any(complete and len(complete) < 8 for complete, _ in history)
