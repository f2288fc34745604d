"""Law 4 when an epoch gets blocks of two attempts of a task: the epoch is run again, without an effect on results."""

import asyncio
import collections
import random

import pytest

from millstream.common import Time, Types, WatermarkStrategy
from millstream.datastream import AsyncDataStream
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.functions import AsyncFunction, FilterFunction, KeyedProcessFunction, MapFunction
from millstream.job.job_status import JobStatus
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run

NAMES = sorted(PROGRAMS)
COUNT = 300


def numbers(env):
    source = NumberSequenceSource(1, COUNT)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())


def salted(env):
    """A random key, the textbook cure for skew."""
    pairs = numbers(env).map(lambda value: (random.randrange(8), value))
    return pairs.key_by(lambda pair: pair[0], Types.LONG()).map(lambda pair: pair[1])


class Answer(AsyncFunction):
    async def async_invoke(self, value):
        await asyncio.sleep(random.random() / 1000)
        return [value]


def unordered(env):
    """Unordered asynchronous results, distributed by position."""
    answers = AsyncDataStream.unordered_wait(numbers(env), Answer(), Time.seconds(5), 50, Types.LONG())
    return answers.rebalance().map(lambda value: value, Types.LONG())


class NotSeen(FilterFunction):
    """Keeps what it has seen in a field: an attempt after another one would drop everything."""

    def open(self, runtime_context):
        self.seen = set()

    def filter(self, value):
        new = value not in self.seen
        self.seen.add(value)
        return new


class Buffering(MapFunction):
    """A field that is set where the function is made, and not in open()."""

    def __init__(self):
        self.seen = []

    def map(self, value):
        self.seen.append(value)
        return value if self.seen.count(value) == 1 else -value


def with_fields(env):
    return numbers(env).filter(NotSeen()).rebalance().map(Buffering(), Types.LONG())


def with_variables(env):
    """Variables of a nested function are fields too."""
    seen = set()

    def keep(value):
        new = value not in seen
        seen.add(value)
        return new

    return numbers(env).filter(keep).rebalance().filter(keep)


class CachedSum(KeyedProcessFunction):
    """Keeps a copy of its state in a field, as it may while it is the only one that writes to it."""

    def open(self, runtime_context):
        self.state = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))
        self.cache = {}

    def process_element(self, value, ctx):
        key = ctx.get_current_key()
        self.cache[key] = self.cache.get(key, self.state.value() or 0) + 1
        self.state.update(self.cache[key])
        yield f"{key}: {self.cache[key]}"


def cached(env):
    return numbers(env).key_by(lambda value: value % 7, Types.LONG()).process(CachedSum())


OTHERS = {made.__name__: made for made in (salted, unordered, with_fields, with_variables, cached)}


def is_right(setup, faults):
    with World() as world:
        life = run(setup, world, faults)
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 0
        found, wanted = (collections.Counter(rows) for rows in (world.visible(), compute_reference(setup)))
        assert found == wanted, (found - wanted, wanted - found)


@pytest.mark.parametrize("name", NAMES)
def test_mixed_attempts_do_not_change_results(name, seed, caplog):
    backend = "lmdb" if NAMES.index(name) % 2 else "hashmap"
    is_right(Setup(PROGRAMS[name], 3, epoch_records=20, backend=backend), Faults(attempts="mixed", seed=seed))
    assert "the epoch is run again" in caplog.text


@pytest.mark.parametrize("name", sorted(OTHERS))
@pytest.mark.parametrize("faults", [Faults(attempts="mixed"), Faults(attempts="twice"), Faults(attempts="broken")])
def test_nondeterministic_functions_are_allowed_as_in_flink(name, faults):
    setup = Setup(OTHERS[name], epoch_records=60, block_records=1000)
    is_right(setup, faults)


@pytest.mark.parametrize("name", ["salted", "with_fields", "tumbling", "side_output"])
def test_attempts_that_are_sometimes_mixed_do_not_change_results(name, seed):
    is_right(Setup((PROGRAMS | OTHERS)[name], 3, epoch_records=20), Faults(mixes=0.2, forget=0.1, seed=seed))


def test_attempts_that_are_mixed_in_every_run_fail_the_epoch():
    setup = Setup(salted, 4, checkpoint_every=None, options={"restart-strategy.type": "none"})
    with World() as world:
        life = run(setup, world, Faults(mixes=1.0))
        assert life.status is JobStatus.FAILED
        assert "was run 10 times" in str(life.failure)
        assert world.visible() == []
