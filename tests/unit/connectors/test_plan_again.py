"""An epoch that was too large is planned again in smaller pieces: from the same positions, each record once."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from reading import MANY, budgets, everything, through_json, values

from millstream.connector.source import Budget, SplitEnumerator, SplitRange
from millstream.connectors.arrow import ArrowSource
from millstream.connectors.collection import CollectionSource
from millstream.connectors.files import FileSource, StreamFormat
from millstream.connectors.hybrid import HybridSource
from millstream.connectors.kafka.enumerator import KafkaEnumerator, Subscription
from millstream.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from millstream.connectors.lakehouse.file_splits import FileEnumerator as TableFiles
from millstream.datastream.connectors.datagen import DataGenSource, Sequence
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.types.factory import Types


def files(directory):
    for name in "abc":
        (directory / name).write_text("".join(f"{name}{number:05d}\n" for number in range(300)))
    return FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(directory)).build()


def sources(directory):
    numbers = NumberSequenceSource(0, 99)
    return {
        "sequence": numbers,
        "collection": CollectionSource(list(range(50)), Types.LONG()),
        "arrow": ArrowSource([pa.array(range(70)), pa.array(range(70, 100))], Types.LONG(), 3),
        "generated": DataGenSource({"n": Sequence(0, 99)}, 100),
        "files": files(directory),
        "hybrid": HybridSource.builder(numbers).add_source(CollectionSource([200, 201], Types.LONG())).build(),
    }


@pytest.mark.parametrize("name", ["sequence", "collection", "arrow", "generated", "files", "hybrid"])
@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_less_is_planned_from_the_same_positions(name, epochs, tmp_path):
    source = sources(tmp_path)[name]
    planned, restored = source.create_enumerator(2), source.create_enumerator(2)
    read = []
    for _, budget in zip(range(epochs), budgets(9)):
        ranges = planned.plan(budget)
        read += ranges
        restored.replayed(copied(ranges))
    failed = planned.plan(Budget(40, MANY, 0))
    smaller = restored.plan_again(copied(failed), Budget(5, MANY, 0))
    assert {part.split for part in failed} >= {part.split for part in smaller if part.records != 0}
    replayed = source.create_enumerator(2)
    replayed.replayed(copied(read))
    replayed.replayed(copied(smaller))
    read += smaller
    assert 0 < count(source, smaller) < count(source, failed)
    for enumerator in (restored, replayed):  # the driver that planned it, and one that has read its log
        rest = []
        while not enumerator.finished():
            rest += enumerator.plan(Budget(50, MANY, 0))
        found = [repr(value) for part in [*read, *rest] if part.records != 0 for value in values(source, part)]
        assert sorted(found) == sorted(map(repr, everything(source, 2)))


def copied(ranges):
    return [SplitRange.from_json(through_json(part.to_json())) for part in ranges]


def count(source, ranges):
    return sum(len(values(source, part)) for part in ranges if part.records != 0)


class Topic:
    """Two partitions that end later and later."""

    ends = 100

    def partitions(self, topics, pattern):
        return [KafkaTopicPartition("t", 0), KafkaTopicPartition("t", 1)]

    def resolve(self, wanted, partitions):
        return dict.fromkeys(partitions, self.ends if wanted == KafkaOffsetsInitializer.latest() else 0)

    def latest(self, partitions, seconds):
        return dict.fromkeys(partitions, self.ends)

    def sample(self, partition, start, number, seconds):
        return [10]


def test_partitions_begin_at_the_offsets_of_the_first_plan():
    topic, wanted = Topic(), Subscription(("t",), starting=KafkaOffsetsInitializer.latest())
    first = KafkaEnumerator(topic, wanted, None)
    assert [part.records for part in first.plan(Budget(10, MANY, 0))] == [0, 0]
    topic.ends = 120
    failed = first.plan(Budget(1000, MANY, 0))

    topic.ends = 500  # a new enumerator that planned by itself would begin here
    again = KafkaEnumerator(topic, wanted, None)
    smaller = again.plan_again(copied(failed), Budget(1, MANY, 0))
    assert sorted((part.split, part.start[0], part.end) for part in smaller) == [("t-0", 100, 101), ("t-1", 100, 100)]
    later = again.plan(Budget(2, MANY, 0))
    assert sorted((part.split, part.start[0]) for part in later) == [("t-0", 101), ("t-1", 100)]


def test_a_source_without_plan_again_is_read_as_planned():
    assert SplitEnumerator.plan_again(SimpleNamespace(), [], Budget(1, 1, 0)) is None
    assert TableFiles.plan_again is SplitEnumerator.plan_again
