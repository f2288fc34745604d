"""Records of a sink reach their topics: at least once when they were sent, exactly once when a job committed them."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from kafka_running import cut, environment, reading, writing

from millstream.cluster.job_events import EpochDone, RescaleDone
from millstream.common import SimpleStringSchema, Types, WatermarkStrategy
from millstream.connector.serialization_schema import SerializationSchema
from millstream.connectors.kafka.cluster import TopicMissing
from millstream.connectors.kafka.properties import BadKafkaProperty
from millstream.connectors.kafka.sink import IncompleteKafkaSink
from millstream.connectors.kafka.staging import Staging
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.errors import InternalError
from millstream.files.remote import NoObjectStore
from millstream.job.job_status import JobStatus
from millstream_chaos.simulation import Setup, World, run

pytestmark = pytest.mark.usefixtures("inline_engine")


def sent(env, values, kind, serializer, broker, guarantee=DeliveryGuarantee.AT_LEAST_ONCE):
    sink = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers).set_delivery_guarantee(guarantee)
    env.from_collection(values, kind).sink_to(sink.set_record_serializer(serializer).build())
    env.execute("sends")


class Field(SerializationSchema):
    """One field of a tuple as text; None stays None."""

    def __init__(self, place):
        self.place = place

    def serialize(self, element):
        return None if element[self.place] is None else str(element[self.place]).encode()


@pytest.mark.parametrize("guarantee", ["AT_LEAST_ONCE", "NONE"])
def test_every_record_is_sent(broker, topic, guarantee):
    values = [f"value {number}" for number in range(25_000)]
    env = environment()
    env.from_collection(values, Types.STRING()).sink_to(writing(broker, topic, guarantee=guarantee))
    env.execute("sends")
    assert Counter(broker.values(topic)) == Counter(values)


def test_messages_without_a_key_go_to_all_partitions(broker, new_topic):
    topic = new_topic("three", 3)
    values = [f"value {number}" for number in range(45_000)]
    env = environment().set_parallelism(1)
    env.from_collection(values, Types.STRING()).sink_to(writing(broker, topic, guarantee="AT_LEAST_ONCE"))
    env.execute("spreads")
    found = broker.read(topic)
    assert Counter(message.value().decode() for message in found) == Counter(values)
    assert {message.partition() for message in found} == {0, 1, 2}


def test_a_message_has_topic_key_headers_and_partition_of_its_record(broker, new_topic):
    left, right = new_topic("left", 3), new_topic("right", 3)
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic_selector(lambda pair: left if pair[0] % 2 else right)
        .set_key_serialization_schema(Field(0))
        .set_value_serialization_schema(Field(1))
        .set_header_provider(lambda pair: [("from", f"{pair[0]}".encode())])
        .set_partitioner(lambda pair, key, value, topic, partitions: partitions[pair[0] % len(partitions)])
        .build()
    )
    kind = Types.TUPLE([Types.LONG(), Types.STRING()])
    sent(environment(), [(1, "a"), (2, None), (5, "c")], kind, serializer, broker)
    found = {
        m.key(): (m.topic(), m.partition(), m.value(), m.headers()) for m in broker.read(left) + broker.read(right)
    }
    assert found == {
        b"1": (left, 1, b"a", [("from", b"1")]),
        b"2": (right, 2, None, [("from", b"2")]),
        b"5": (left, 2, b"c", [("from", b"5")]),
    }


def test_a_key_goes_to_the_partition_that_the_java_client_chooses(broker, new_topic):
    """murmur2 of the key; the hashes are those of Kafka's own tests."""
    hashes = {
        "21": -973932308,
        "foobar": -790332482,
        "abc": 479470107,
        "a-little-bit-long-string": -985981536,
        "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    }
    topic = new_topic("keyed", 10)
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic).set_key_serialization_schema(Field(0))
    serializer.set_value_serialization_schema(Field(0))
    words = [(word,) for word in hashes]
    sent(environment(), words, Types.TUPLE([Types.STRING()]), serializer.build(), broker)
    found = {message.value().decode(): message.partition() for message in broker.read(topic)}
    assert found == {word: (number & 0x7FFFFFFF) % 10 for word, number in hashes.items()}


def test_timestamps_of_records_become_those_of_messages(broker, new_topic):
    source, target = new_topic("in"), new_topic("out")
    broker.produce(source, ["a", "b"], timestamps=[1234, 5678])
    env = environment()
    read = reading(broker, source).set_bounded(KafkaOffsetsInitializer.latest()).build()
    stream = env.from_source(read, WatermarkStrategy.no_watermarks(), "kafka")
    stream.sink_to(writing(broker, target, guarantee="AT_LEAST_ONCE"))
    env.execute("copies")
    assert [message.timestamp()[1] for message in broker.read(target)] == [1234, 5678]


def test_the_sink_waits_for_a_topic_that_was_just_created(broker, topic, staging):
    """Brokers learn of a new topic one after another."""
    late = f"{topic}-late"
    maker = threading.Timer(0.3, broker.create_topic, [late])
    maker.start()
    writing(broker, late, staging).check()
    maker.join()


def test_invalid_settings_are_refused_before_the_job_starts(broker, topic, staging):
    def start(sink):
        env = environment()
        env.from_collection(["a"], Types.STRING()).sink_to(sink)
        env.execute("never")

    with pytest.raises(TopicMissing):
        start(writing(broker, "nowhere", staging))
    with pytest.raises(NoObjectStore, match="hdfs://"):
        start(writing(broker, topic, "hdfs://name/staging"))
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic)
    serializer.set_value_serialization_schema(SimpleStringSchema())
    builder = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
    builder.set_record_serializer(serializer.build()).set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(BadKafkaProperty, match=r"transaction\.max\.timeout\.ms of 900000"):
        start(builder.set_property("transaction.timeout.ms", "1000000").build())
    with pytest.raises(IncompleteKafkaSink, match="no record serializer"):
        KafkaSink.builder().set_bootstrap_servers("x").build()


# ------------------------------------------------------------------------------------------------ whole jobs

RECORDS, KEYS = 2000, 7


class Counting(KeyedProcessFunction):
    """Counts by key; runs a fault once, in the middle."""

    def __init__(self, marker, accident):
        self.marker, self.accident = marker, accident

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        if int(value) == RECORDS // 2 and not self.marker.exists():
            self.marker.touch()
            self.accident()
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{int(value) % KEYS} {count}"


def expected() -> Counter:
    return Counter(f"{key} {count}" for key in range(KEYS) for count in range(1, len(range(key, RECORDS, KEYS)) + 1))


def filled(broker, new_topic) -> tuple[str, str]:
    """A topic of numbers, and one for the counts."""
    source, target = new_topic("in", 2), new_topic("out", 2)
    for partition in (0, 1):
        broker.produce(source, map(str, range(partition, RECORDS, 2)), partition=partition)
    return source, target


def counting(broker, topics, tmp_path, staging, accident=lambda: None, **settings) -> StreamExecutionEnvironment:
    env = environment(tmp_path, millstream__epoch__max_records="300", **settings)
    read = reading(broker, topics[0]).set_bounded(KafkaOffsetsInitializer.latest()).build()
    stream = env.from_source(read, WatermarkStrategy.no_watermarks(), "numbers")
    function = Counting(tmp_path / "happened", accident)
    counts = stream.uid("in").key_by(lambda v: int(v) % KEYS, Types.LONG()).process(function, Types.STRING())
    counts.uid("counts").sink_to(writing(broker, topics[1], staging)).uid("out")
    return env


def test_a_job_that_fails_and_restarts_writes_every_result_once(broker, new_topic, tmp_path, staging):
    topics = filled(broker, new_topic)
    result = counting(broker, topics, tmp_path, staging, cut).execute("counts")
    assert result.get_accumulator_result("millstream.restarts") == 1
    assert Counter(broker.values(topics[1])) == expected()


@pytest.mark.parametrize("place", ["given", "of the job"])
def test_a_new_run_continues_from_the_checkpoint_of_a_dead_one(broker, new_topic, tmp_path, monkeypatch, place):
    """The first run dies inside a commit, after its transaction: the committed output is not repeated. The new run
    finds the staged output, wherever it is, and removes it afterwards."""
    topics = filled(broker, new_topic)
    staging = str(tmp_path / "staging") if place == "given" else ""
    wherever = "staging/*@*" if place == "given" else "checkpoints/*/staged/*@*"
    remove, calls = Staging.remove, []
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "remove", lambda *args: remove(*args) if calls.append(1) or len(calls) < 5 else cut())
        with pytest.raises(InternalError, match="PowerCut"):
            counting(broker, topics, tmp_path, staging, restart_strategy__type="none").execute("dies")
    assert 0 < len(broker.values(topics[1])) < RECORDS
    assert list(tmp_path.glob(wherever))
    newest = max((tmp_path / "checkpoints").glob("*/chk-*"), key=lambda path: int(path.name.removeprefix("chk-")))
    settings = {"execution__state_recovery__path": str(newest)}
    counting(broker, topics, tmp_path, staging, **settings).execute("goes on")
    assert Counter(broker.values(topics[1])) == expected()
    assert list(tmp_path.glob("**/*@*")) == list(tmp_path.glob("**/staged")) == []


def test_the_sink_waits_while_the_buffer_is_full(broker, topic):
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topic).set_key_serialization_schema(Field(0))
    serializer.set_value_serialization_schema(Field(1))
    sink = KafkaSink.builder().set_bootstrap_servers(broker.bootstrap_servers)
    sink.set_record_serializer(serializer.build()).set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE)
    pairs = [(number, f"value {number}") for number in range(3000)]
    env = environment().set_parallelism(1)
    stream = env.from_collection(pairs, Types.TUPLE([Types.LONG(), Types.STRING()]))
    stream.sink_to(sink.set_property("queue.buffering.max.messages", "70").build())
    env.execute("waits")
    found = [(int(message.key()), message.value().decode()) for message in broker.read(topic)]
    assert found == pairs


def test_staged_output_survives_a_rescale(broker, topic, staging):
    """Between two checkpoints, after every epoch."""

    def program(env):
        numbers = env.from_source(NumberSequenceSource(1, 40), WatermarkStrategy.no_watermarks(), "n").set_parallelism(
            1
        )
        texts = numbers.uid("n").rebalance().map(str, Types.STRING()).uid("texts")
        texts.sink_to(writing(broker, topic, staging)).uid("kafka")
        return texts

    def rescale(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch <= 4:
            master.rescale(1 + observation.epoch % 3)

    with World() as world:
        life = run(Setup(program, epoch_records=4, checkpoint_every=3), world, listen=rescale)
    assert life.status is JobStatus.FINISHED, life.failure
    assert len([each for each in life.seen if isinstance(each, RescaleDone)]) > 3
    assert sorted(map(int, broker.values(topic))) == list(range(1, 41))
