"""A source reads each offset of its range once; nothing is lost silently."""

from __future__ import annotations

import time

import confluent_kafka
import pytest
from kafka_running import LATEST, collected, environment, reading, wait_for

from millstream.common import Types, WatermarkStrategy
from millstream.connector.source import Budget, ReaderContext, SplitRange
from millstream.connectors.kafka import cluster, reader
from millstream.connectors.kafka.client import BrokerUnreachable
from millstream.connectors.kafka.cluster import NoOffset, TopicMissing
from millstream.connectors.kafka.enumerator import RecordsVanished
from millstream.connectors.kafka.properties import BadKafkaProperty
from millstream.connectors.kafka.reader import OffsetsGone
from millstream.connectors.kafka.source import IncompleteKafkaSource
from millstream.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordDeserializationSchema,
    KafkaTopicPartition,
)
from millstream.datastream.formats.json import JsonRowDeserializationSchema
from millstream.datastream.functions import ProcessFunction
from millstream.errors import ExternalError, UserError

pytestmark = pytest.mark.usefixtures("inline_engine")

Offsets = KafkaOffsetsInitializer
NUMBERS = [str(number) for number in range(10)]


@pytest.fixture
def numbers(broker, topic):
    """Ten messages, a second apart; the group `readers` has committed offset 4."""
    broker.produce(topic, NUMBERS, timestamps=[1000 * (number + 1) for number in range(10)])
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"readers-{topic}"})
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 4)], asynchronous=False)
    consumer.close()
    return topic


@pytest.mark.parametrize(
    ("starting", "expected"),
    [
        (lambda _: Offsets.earliest(), NUMBERS),
        (lambda _: LATEST, []),
        (lambda topic: Offsets.offsets({KafkaTopicPartition(topic, 0): 3}), NUMBERS[3:]),
        (lambda topic: Offsets.offsets({KafkaTopicPartition(topic, 0): 30}), NUMBERS),
        (lambda topic: Offsets.offsets({KafkaTopicPartition(topic, 0): 30}, KafkaOffsetResetStrategy.LATEST), []),
        (lambda topic: Offsets.offsets({}), NUMBERS[4:]),
        (lambda _: Offsets.timestamp(6000), NUMBERS[5:]),
        (lambda _: Offsets.timestamp(60_000), []),
        (lambda _: Offsets.committed_offsets(), NUMBERS[4:]),
    ],
    ids=["earliest", "latest", "offsets", "reset", "reset-latest", "offsets-committed", "time", "late", "committed"],
)
def test_reading_begins_at_the_starting_offsets(broker, numbers, starting, expected):
    builder = reading(broker, numbers).set_group_id(f"readers-{numbers}").set_bounded(LATEST)
    assert collected(builder.set_starting_offsets(starting(numbers)).build()) == expected


@pytest.mark.parametrize(
    ("stopping", "expected"),
    [
        (lambda topic: Offsets.offsets({KafkaTopicPartition(topic, 0): 6}), NUMBERS[:6]),
        (lambda _: Offsets.timestamp(6000), NUMBERS[:5]),
        (lambda _: Offsets.committed_offsets(), NUMBERS[:4]),
        (lambda _: LATEST, NUMBERS),
    ],
    ids=["offsets", "timestamp", "committed", "latest"],
)
def test_reading_ends_at_the_stopping_offsets(broker, numbers, stopping, expected):
    builder = reading(broker, numbers).set_group_id(f"readers-{numbers}")
    assert collected(builder.set_bounded(stopping(numbers)).build()) == expected
    assert collected(builder.set_unbounded(stopping(numbers)).build()) == expected


def test_a_group_without_offsets_needs_a_strategy(broker, numbers):
    builder = reading(broker, numbers).set_group_id("nobody").set_bounded(LATEST)
    with pytest.raises(NoOffset, match="the group has committed none"):
        collected(builder.set_starting_offsets(Offsets.committed_offsets()).build())
    strategy = KafkaOffsetResetStrategy.EARLIEST
    assert collected(builder.set_starting_offsets(Offsets.committed_offsets(strategy)).build()) == NUMBERS


def test_topics_are_found_by_pattern_and_single_partitions_by_number(broker, new_topic):
    first, second = new_topic("a"), new_topic("b", 2)
    broker.produce(first, ["first"])
    broker.produce(second, ["second"], partition=1)
    pattern = reading(broker).set_topic_pattern(first[:-1] + "[ab]").set_bounded(LATEST)
    assert sorted(collected(pattern.build())) == ["first", "second"]
    chosen = reading(broker).set_partitions({KafkaTopicPartition(second, 0)}).set_bounded(LATEST)
    assert collected(chosen.build()) == []


def test_a_message_has_its_key_headers_partition_and_offset(broker, topic):
    broker.produce(topic, ["v", None], key="k", headers=[("h", b"1")], timestamps=[7, 8])
    whole = reading(broker, topic).set_deserializer(KafkaRecordDeserializationSchema.rows()).set_bounded(LATEST)
    rows = [tuple(row) for row in collected(whole.build())]
    assert rows[0] == (topic, 0, 0, 7, b"k", b"v", [("h", b"1")])
    assert (rows[1][2], rows[1][5]) == (1, None)
    assert collected(reading(broker, topic).set_bounded(LATEST).build()) == ["v"]  # a tombstone has no value


def test_records_have_the_timestamps_of_their_messages(broker, numbers):
    class Stamps(ProcessFunction):
        def process_element(self, value, ctx):
            yield ctx.timestamp()

    source = reading(broker, numbers).set_bounded(LATEST).build()
    stream = environment().from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    with stream.process(Stamps(), Types.LONG()).execute_and_collect() as stamps:
        assert sorted(stamps) == [1000 * number for number in range(1, 11)]


def test_a_slow_partition_holds_the_watermark(broker, new_topic):
    """Each partition has a watermark of its own: the one whose times are far behind loses nothing."""
    topic = new_topic("two", 2)
    broker.produce(topic, ["new"] * 30, partition=0, timestamps=range(50_000, 80_000, 1000))
    broker.produce(topic, ["old"] * 30, partition=1, timestamps=range(1000, 31_000, 1000))

    class Late(ProcessFunction):
        def process_element(self, value, ctx):
            if ctx.timestamp() <= ctx.timer_service().current_watermark():
                yield value

    env = environment(millstream__epoch__max_records="4").set_parallelism(1)
    source = reading(broker, topic).set_bounded(LATEST).build()
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    with stream.process(Late(), Types.STRING()).execute_and_collect() as late:
        assert list(late) == []


def test_aborted_transactions_are_skipped_without_waiting(broker, topic):
    """With three offsets an epoch, some ranges hold nothing but aborted messages and marks."""
    broker.produce(topic, ["a", "b"], transaction=topic)
    broker.produce(topic, [f"no {number}" for number in range(9)], transaction=topic, commit=False)
    broker.produce(topic, ["c"], transaction=topic)
    broker.produce(topic, [f"no {number}" for number in range(9)], transaction=topic, commit=False)
    source = reading(broker, topic).set_bounded(LATEST)
    assert collected(source.build(), environment(millstream__epoch__max_records="3")) == ["a", "b", "c"]
    everything = source.set_property("isolation.level", "read_uncommitted").build()
    assert len(collected(everything)) == 21


def test_a_range_is_read_exactly_again_and_from_anywhere(broker, numbers):
    reader = reading(broker, numbers).build().create_reader(ReaderContext(0, 1, 3))

    def read(start, end):
        return [v for block in reader.read(SplitRange(f"{numbers}-0", [start, None], end)) for v in str_of(block)]

    for start, end in [(0, 4), (4, 9), (2, 5), (2, 5), (9, 10), (10, 10), (0, 10)]:
        assert read(start, end) == NUMBERS[start:end]
    reader.close()


def test_messages_fetched_after_a_range_belong_to_the_next_one(broker, topic):
    """Offset 2 is a mark: a batch of two messages from offset 1 on goes beyond the range that ends with 3."""
    broker.produce(topic, ["a", "b"], transaction=topic)
    broker.produce(topic, ["c", "d"], transaction=topic)
    reader = reading(broker, topic).build().create_reader(ReaderContext(0, 1, 100))

    def read(start, end):
        return [v for block in reader.read(SplitRange(f"{topic}-0", [start, None], end)) for v in str_of(block)]

    assert read(0, 1) == ["a"]
    time.sleep(0.5)  # all is fetched by now
    assert [read(1, 3), read(3, 4), read(4, 6)] == [["b"], ["c"], ["d"]]
    reader.close()


def str_of(block):
    return [str(value) for value in block.values]


def test_deleted_offsets_are_an_error(broker, numbers):
    source = reading(broker, numbers).build()
    enumerator = source.create_enumerator(1)
    enumerator.plan(Budget(3, 1 << 30, 0))
    broker.delete_records(numbers, 0, 8)
    (part,) = enumerator.plan(Budget(3, 1 << 30, 0))
    reader = source.create_reader(ReaderContext(0, 1, 100))
    with pytest.raises(OffsetsGone, match=f"offsets 3 to 6 of {numbers}-0 are no longer in the log"):
        list(reader.read(part))
    reader.close()
    enumerator.close()


def test_deleted_offsets_are_counted_if_the_source_may_skip_them(broker, numbers):
    source = reading(broker, numbers).set_property("auto.offset.reset", "earliest").build()
    reader = source.create_reader(ReaderContext(0, 1, 100))

    def read(start, end):
        part = SplitRange(f"{numbers}-0", [start, None], end)
        return [v for block in reader.read(part) for v in str_of(block)], reader.take_rejected().count

    broker.delete_records(numbers, 0, 5)
    assert [read(1, 4), read(4, 7), read(7, 10)] == [([], 3), (NUMBERS[5:7], 1), (NUMBERS[7:], 0)]
    reader.close()
    with pytest.raises(BadKafkaProperty, match="would skip records that exist"):
        reading(broker, numbers).set_property("auto.offset.reset", "latest").build()


def test_a_recreated_topic_is_an_error(broker, numbers):
    source = reading(broker, numbers).build()
    enumerator = source.create_enumerator(1, {"open": {f"{numbers}-0": [99, None]}, "done": {}})
    # a broker that was just restarted may still find the end of its log
    assert enumerator.plan(Budget(3, 1 << 30, 0)) == []
    with pytest.raises(RecordsVanished, match="read up to offset 99, but now ends at 10"):
        enumerator.plan(Budget(3, 1 << 30, 20_000))
    enumerator.close()


def test_a_logged_plan_contains_the_starting_offset_of_each_partition(broker, new_topic):
    """A job that started at the latest offset and dies before its first checkpoint continues from that offset, not from
    a later one."""
    topic = new_topic("two", 2)
    broker.produce(topic, ["before"], partition=0)
    builder = reading(broker, topic).set_starting_offsets(LATEST)
    first = builder.build().create_enumerator(1)
    planned = first.plan(Budget(100, 1 << 30, 0))
    broker.produce(topic, ["after"], partition=0)
    broker.produce(topic, ["after"], partition=1)
    again = builder.build().create_enumerator(1)
    again.replayed([SplitRange.from_json(part.to_json()) for part in planned])
    assert again.snapshot() == first.snapshot()
    ranges = again.plan(Budget(100, 1 << 30, 0))
    assert {part.split: (part.start[0], part.end) for part in ranges} == {f"{topic}-0": (1, 2), f"{topic}-1": (0, 1)}
    assert again.lag() == 0
    first.close()
    again.close()


def test_the_budget_is_shared_and_the_lag_is_known(broker, new_topic):
    topic = new_topic("two", 2)
    broker.produce(topic, ["x"] * 100, partition=0)
    broker.produce(topic, ["x"] * 10, partition=1)
    enumerator = reading(broker, topic).build().create_enumerator(2)
    ranges = enumerator.plan(Budget(40, 1 << 30, 0))
    assert {part.split: part.end for part in ranges} == {f"{topic}-0": 30, f"{topic}-1": 10}
    assert enumerator.lag() == 70
    few = enumerator.plan(Budget(40, 20, 0))  # bytes
    assert sum(part.records for part in few) == 20
    enumerator.close()


def test_a_partition_that_is_added_is_found_while_the_job_runs(broker, topic, tmp_path):
    seen = tmp_path / "seen"

    def remember(value):
        with seen.open("a") as file:
            file.write(f"{value}\n")
        return value

    source = reading(broker, topic).set_property("partition.discovery.interval.ms", "100").build()
    env = environment()
    env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka").map(remember, Types.STRING()).print()
    broker.produce(topic, ["first"])
    client = env.execute_async("discovers")
    try:
        assert wait_for(lambda: seen.exists() and seen.read_text() == "first\n")
        broker.add_partitions(topic, 2)
        broker.produce(topic, ["second"], partition=1)
        assert wait_for(lambda: seen.read_text() == "first\nsecond\n")
    finally:
        client.cancel().result(60)


def test_offsets_are_committed_to_the_group_with_each_checkpoint(broker, numbers, tmp_path):
    source = reading(broker, numbers).set_group_id(f"told-{numbers}").set_bounded(LATEST).build()
    collected(source, environment(tmp_path))
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"told-{numbers}"})
    (found,) = consumer.committed([confluent_kafka.TopicPartition(numbers, 0)], timeout=10)
    consumer.close()
    assert found.offset == 10


def test_a_message_that_cannot_be_decoded_is_named(broker, topic):
    class Numbers(KafkaRecordDeserializationSchema):
        def deserialize(self, record):
            return [int(record.value)]

        def get_produced_type(self):
            return Types.LONG()

    broker.produce(topic, ["1", "one"])
    source = reading(broker, topic).set_deserializer(Numbers()).set_bounded(LATEST).build()
    with pytest.raises(Exception, match=rf"message 1 of {topic}-0 cannot be decoded: ValueError"):
        collected(source)


def test_a_format_decodes_messages_and_names_an_invalid_one(broker, topic):
    broker.produce(topic, ['{"id": 1}', "[", None, '{"id": 2}'], timestamps=[5, 6, 7, 8])
    kind = Types.ROW_NAMED(["id"], [Types.LONG()])
    json = JsonRowDeserializationSchema.builder().type_info(kind)
    source = reading(broker, topic).set_bounded(LATEST)
    with pytest.raises(UserError, match=rf"message 1 of {topic}-0 is not a valid json record"):
        collected(source.set_value_only_deserializer(json.build()).build())
    rows = collected(source.set_value_only_deserializer(json.ignore_parse_errors().build()).build())
    assert [row.id for row in rows] == [1, 2]


def test_missing_topics_are_refused_before_the_job_starts(broker, topic, monkeypatch):
    with pytest.raises(TopicMissing, match="topic 'nowhere' does not exist"):
        collected(reading(broker, "nowhere").build())
    with pytest.raises(TopicMissing, match=f"partition 5 of topic '{topic}'"):
        collected(reading(broker).set_partitions({KafkaTopicPartition(topic, 5)}).build())
    with pytest.raises(BadKafkaProperty, match=r"no\.such\.thing"):
        collected(reading(broker, topic).set_property("no.such.thing", "1").build())
    with pytest.raises(IncompleteKafkaSource, match="nothing to read"):
        reading(broker).build()
    monkeypatch.setattr(cluster, "DEADLINE", 1.0)
    elsewhere = reading(broker, topic).set_bootstrap_servers("127.0.0.1:1")
    with pytest.raises(BrokerUnreachable, match=r"127\.0\.0\.1:1"):
        collected(elsewhere.build())
    assert issubclass(BrokerUnreachable, ExternalError)


def test_a_reader_prefetches_much_for_few_partitions_unless_configured(monkeypatch):
    opened = []
    monkeypatch.setattr(reader, "_Partition", lambda _split, settings, _reset: opened.append(settings))
    for told in ({}, {"queued.max.messages.kbytes": 7}):
        made = reader.KafkaReader(KafkaRecordDeserializationSchema.rows(), told, 10)
        for number in range(6):
            made._partition(f"topic-{number}")
    ahead = [each["queued.max.messages.kbytes"] for each in opened]
    assert ahead == [16 << 10] * 4 + [2 << 10] * 2 + [7] * 6
