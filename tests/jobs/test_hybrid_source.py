"""Hybrid sources: all records once, in order, wherever the input is cut into epochs or the job is restored."""

from __future__ import annotations

import json

import pytest

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.connector.source import Boundedness, Budget, ReaderContext, SplitRange
from millstream.connectors.collection import CollectionSource
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.hybrid_source import HybridSource
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.errors import UserError


def collection(*values: int) -> CollectionSource:
    return CollectionSource(list(values), Types.LONG())


class Endless(CollectionSource):
    def boundedness(self):
        return Boundedness.CONTINUOUS_UNBOUNDED


@pytest.mark.parametrize(("parallelism", "records"), [(1, 1), (1, 4), (2, 3), (3, 100)])
def test_sources_are_read_one_after_another(parallelism, records):
    configuration = Configuration()
    configuration.set_string("millstream.epoch.max-records", str(records))
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    source = HybridSource.builder(collection(1, 2, 3)).add_source(collection()).add_source(collection(4, 5)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "both")
    found = list(stream.execute_and_collect())
    assert (found if parallelism == 1 else sorted(found)) == [1, 2, 3, 4, 5]


def test_sources_with_several_splits():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(3)
    source = HybridSource.builder(NumberSequenceSource(1, 20)).add_source(NumberSequenceSource(21, 30)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "both")
    assert sorted(stream.execute_and_collect()) == list(range(1, 31))


@pytest.mark.parametrize("stop", range(8))
@pytest.mark.parametrize("replay", [False, True])
def test_a_restart_continues_with_the_current_source(stop, replay):
    source = HybridSource.builder(collection(*range(5))).add_source(collection(*range(5, 9))).build()
    reader = source.create_reader(ReaderContext(0, 1, 100))
    enumerator, found, logged = source.create_enumerator(1), [], []
    for epoch in range(20):
        if epoch == stop:
            state = json.loads(json.dumps(enumerator.snapshot()))
            enumerator = source.create_enumerator(1, None if replay else state)
            if replay:
                for ranges in logged:
                    enumerator.replayed(ranges)
            assert enumerator.snapshot() == state
        ranges = [SplitRange.from_json(json.loads(json.dumps(p.to_json()))) for p in enumerator.plan(Budget(2, 1, 0))]
        logged.append(ranges)
        found += [value for part in ranges for read in reader.read(part) for value in read.values]
        assert bool(enumerator.splits()) != enumerator.finished()
        if enumerator.finished():
            break
    assert found == list(range(9))


def test_incompatible_sources_are_refused():
    for build, words in (
        (lambda: HybridSource.builder(Endless([1], Types.LONG())).add_source(collection(1)).build(), "is unbounded"),
        (
            lambda: HybridSource.builder(collection(1)).add_source(CollectionSource(["a"], Types.STRING())).build(),
            "source 2 has the type String",
        ),
        (lambda: HybridSource.builder(collection(1)).add_source("here").build(), "not a source"),
    ):
        with pytest.raises(UserError, match=words):
            build()
    endless = HybridSource.builder(collection(1)).add_source(Endless([1], Types.LONG())).build()
    assert endless.boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
