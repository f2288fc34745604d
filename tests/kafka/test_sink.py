"""What a sink was given is in its topics: at least once when it was sent, exactly once when it was committed."""

from __future__ import annotations

import dataclasses
import os
import threading
import time
from collections import Counter

import confluent_kafka
import pytest
from kafka_running import environment, reading, staged, writing

from millstream.common import SimpleStringSchema, Types, WatermarkStrategy
from millstream.connectors.kafka import transactions
from millstream.connectors.kafka.cluster import TopicMissing
from millstream.connectors.kafka.commit import KafkaCommitter
from millstream.connectors.kafka.marks import TOPIC, Marks
from millstream.connectors.kafka.messages import StagedOutputDamaged
from millstream.connectors.kafka.properties import BadKafkaProperty
from millstream.connectors.kafka.sink import IncompleteKafkaSink
from millstream.connectors.kafka.staging import StagedOutputLost, Staging
from millstream.connectors.kafka.transactions import TakenOver
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaRecordSerializationSchema, KafkaSink
from millstream.datastream.state import ValueStateDescriptor
from millstream.model.serialization import SerializationSchema
from millstream.model.staged import NotStaged

pytestmark = pytest.mark.usefixtures("inline_engine")


class PowerCut(Exception):
    pass


def cut(*_args, **_kwargs):
    raise PowerCut


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


def test_a_key_goes_where_the_java_client_sends_it(broker, new_topic):
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


def test_a_topic_that_was_made_a_moment_ago_is_waited_for(broker, topic, staging):
    """Brokers hear of a topic one after the other."""
    late = f"{topic}-late"
    maker = threading.Timer(0.3, broker.create_topic, [late])
    maker.start()
    writing(broker, late, staging).check()
    maker.join()


# --------------------------------------------------------------------------------------------- exactly once


def test_output_is_seen_when_it_is_committed_and_committing_again_shows_nothing(broker, topic, staging):
    sink = writing(broker, topic, staging)
    made = staged(sink, 1, ["a", "b"]) + staged(sink, 1, ["c"], subtask=1) + staged(sink, 2, ["d"])
    assert broker.values(topic, "read_uncommitted") == []
    sink.create_committer().commit(1, made)
    sink.create_committer().commit(1, made)
    assert broker.values(topic) == ["a", "b", "c", "d"]
    assert [name for name in os.listdir(staging) if "@" in name] == []


CALLS = ["opening transactions", "beginning a transaction", "marking the transaction", "committing"]


@pytest.mark.parametrize("way", ["before", "after"])
@pytest.mark.parametrize("place", [*range(len(CALLS)), "staging"])
def test_a_crash_at_any_call_to_the_broker_shows_nothing_twice(broker, topic, staging, monkeypatch, place, way):
    """Before or after it; behind the commit of the transaction only its mark can tell."""
    sink = writing(broker, topic, staging)
    made = staged(sink, 1, ["a", "b"]) + staged(sink, 2, ["c"])
    seen = []
    with monkeypatch.context() as patch:
        call = transactions.Transactions._call

        def until_cut(self, asked, doing):
            seen.append(doing)
            if len(seen) - 1 != place:
                return call(self, asked, doing)
            if way == "after":
                call(self, asked, doing)
            return cut()

        patch.setattr(transactions.Transactions, "_call", until_cut)
        patch.setattr(transactions.Transactions, "_give_up", lambda self: None)
        if place == "staging":
            patch.setattr(Staging, "remove", cut)
        with pytest.raises(PowerCut):
            sink.create_committer().commit(1, made)
    assert seen == (CALLS if place == "staging" else CALLS[: place + 1])
    sink.create_committer().commit(1, made)
    assert broker.values(topic) == ["a", "b", "c"]


def test_epochs_that_are_staged_again_after_an_older_checkpoint_are_not_shown_again(broker, topic, staging):
    """The newest checkpoint was damaged: epochs 2 and 3 are run again, as planned, and 4 is new."""
    sink = writing(broker, topic, staging)
    committer = sink.create_committer()
    committer.commit(1, staged(sink, 1, ["a"]) + staged(sink, 2, ["b"]) + staged(sink, 3, ["c"]))
    again = staged(sink, 2, ["b"]) + staged(sink, 3, ["c"]) + staged(sink, 4, ["d"])
    sink.create_committer().commit(2, again)
    assert broker.values(topic) == ["a", "b", "c", "d"]


def test_large_commits_are_cut_between_epochs(broker, topic, staging, monkeypatch):
    sink = writing(broker, topic, staging)
    made = [each for epoch in range(5) for subtask in (0, 1) for each in staged(sink, epoch, ["x"] * 3, subtask)]
    counted = []
    write = transactions.Transactions.write
    monkeypatch.setattr(
        transactions.Transactions, "write", lambda self, *args: counted.append(write(self, *args)) or counted[-1]
    )
    KafkaCommitter(sink.prefix, staging, sink._settings(), most=10).commit(1, made)
    assert counted == [12, 12, 6]


def test_a_run_that_was_replaced_commits_nothing_more(broker, topic, staging):
    sink = writing(broker, topic, staging)
    zombie, heir = sink.create_committer(), sink.create_committer()
    zombie.commit(1, staged(sink, 1, ["a"]))
    heir.commit(1, staged(sink, 2, ["b"], job="heir"))
    late = staged(sink, 2, ["zombie"])
    for _ in range(2):  # nor when it tries again, which would fence the heir
        with pytest.raises(TakenOver, match="was taken over"):
            zombie.commit(2, late)
    heir.commit(2, staged(sink, 3, ["c"], job="heir"))
    assert broker.values(topic) == ["a", "b", "c"]


def test_a_run_that_was_replaced_while_it_slept_commits_nothing_more(broker, topic, staging, monkeypatch):
    """It wakes when its transaction would have expired anyway: what has happened can be told by the mark alone."""
    sink = dataclasses.replace(writing(broker, topic, staging), properties={"transaction.timeout.ms": "1000"})
    zombie, heir = sink.create_committer(), sink.create_committer()
    zombie.commit(1, staged(sink, 1, ["a"]))
    late, read = staged(sink, 2, ["zombie"]), Staging.read

    def asleep(staging, file):
        yield from read(staging, file)
        heir.commit(1, staged(sink, 2, ["b"], job="heir"))
        time.sleep(1.5)

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "read", lambda staging, file: (read if file.job == "heir" else asleep)(staging, file))
        with pytest.raises(TakenOver, match="was taken over"):
            zombie.commit(2, late)
    heir.commit(2, staged(sink, 3, ["c"], job="heir"))
    assert broker.values(topic) == ["a", "b", "c"]


def test_going_back_to_the_checkpoint_of_an_earlier_run_does_not_commit_it_again(broker, topic, staging):
    sink = writing(broker, topic, staging)
    first = staged(sink, 1, ["a"], job="first")
    sink.create_committer().commit(1, first)
    sink.create_committer().commit(1, staged(sink, 2, ["b"], job="second"))
    sink.create_committer().commit(1, first)
    assert broker.values(topic) == ["a", "b"]


def test_an_open_transaction_of_another_sink_does_not_hide_a_mark(broker, topic, staging):
    """Its mark comes first in the same partition: what is committed behind it is waited for, not overlooked."""
    sink = writing(broker, topic, staging)
    committer = sink.create_committer()
    committer.commit(1, staged(sink, 1, ["a"]))
    place = Marks(f"{topic}-sink", {"bootstrap.servers": broker.bootstrap_servers}).partition
    other = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(TOPIC, b"{}", b"other", place)
    other.flush(30)
    made = staged(sink, 2, ["b"])
    committer.commit(2, made)
    threading.Timer(1.0, other.abort_transaction, [30]).start()
    sink.create_committer().commit(2, made)
    assert broker.values(topic) == ["a", "b"]


def test_staged_output_that_is_lost_or_damaged_is_an_error(broker, topic, staging):
    sink = writing(broker, topic, staging)
    lost, damaged = staged(sink, 1, ["a"]), staged(sink, 2, ["b"])
    os.remove(os.path.join(staging, lost[0]["name"]))
    with pytest.raises(StagedOutputLost, match="is not there, and was not committed"):
        sink.create_committer().commit(1, lost)
    path = os.path.join(staging, damaged[0]["name"])
    with open(path, "r+b") as file:
        file.seek(40)
        file.write(b"\xff\xff\xff")
    with pytest.raises(StagedOutputDamaged):
        sink.create_committer().commit(1, damaged)
    for change in ({"name": "../../etc/passwd"}, {"name": "a@1@b/../c"}, {"directory": "/tmp/../etc"}):
        with pytest.raises(NotStaged):
            sink.create_committer().commit(1, [{**damaged[0], **change}])
    assert broker.values(topic) == []


def test_what_was_staged_is_found_when_its_directory_was_moved(broker, topic, staging):
    sink = writing(broker, topic, staging)
    made = staged(sink, 1, ["a"])
    os.rename(staging, f"{staging}-moved")
    moved = writing(broker, topic, f"{staging}-moved")
    with pytest.raises(StagedOutputLost):
        sink.create_committer().commit(1, made)
    moved.create_committer().commit(1, made)
    assert broker.values(topic) == ["a"]


def test_an_attempt_that_failed_leaves_nothing(broker, topic, staging):
    sink = writing(broker, topic, staging)
    made = staged(sink, 1, ["a"])
    sink.create_committer().abort(made)
    dead = staged(sink, 2, ["dead"], subtask=1)  # by a worker that was killed before it could tell
    sink.create_committer().commit(1, staged(sink, 2, ["b"]))
    assert dead
    assert [name for name in os.listdir(staging) if "@" in name] == []
    assert broker.values(topic) == ["b"]


def test_what_cannot_work_is_told_before_the_job_starts(broker, topic, staging):
    def start(sink):
        env = environment()
        env.from_collection(["a"], Types.STRING()).sink_to(sink)
        env.execute("never")

    with pytest.raises(TopicMissing):
        start(writing(broker, "nowhere", staging))
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
    """Counts by key; once, in the middle, something happens."""

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
def test_a_new_run_goes_on_from_the_checkpoint_of_one_that_died(broker, new_topic, tmp_path, monkeypatch, place):
    """The first run dies for good inside a commit, behind its transaction: what it committed is not repeated. The new
    one finds what was staged, wherever that is, and leaves nothing there."""
    topics = filled(broker, new_topic)
    staging = str(tmp_path / "staging") if place == "given" else ""
    wherever = "staging/*@*" if place == "given" else "checkpoints/*/staged/*@*"
    remove, calls = Staging.remove, []
    with monkeypatch.context() as patch:
        patch.setattr(Staging, "remove", lambda *args: remove(*args) if calls.append(1) or len(calls) < 5 else cut())
        with pytest.raises(PowerCut):
            counting(broker, topics, tmp_path, staging, restart_strategy__type="none").execute("dies")
    assert 0 < len(broker.values(topics[1])) < RECORDS
    assert list(tmp_path.glob(wherever))
    newest = max((tmp_path / "checkpoints").glob("*/chk-*"), key=lambda path: int(path.name.removeprefix("chk-")))
    settings = {"execution__state_recovery__path": str(newest)}
    counting(broker, topics, tmp_path, staging, **settings).execute("goes on")
    assert Counter(broker.values(topics[1])) == expected()
    assert list(tmp_path.glob("**/*@*")) == list(tmp_path.glob("**/staged")) == []


def test_a_buffer_that_is_full_is_waited_for(broker, topic):
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
