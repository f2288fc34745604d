"""Rescale, savepoint and the recovery from it, with a lost connection or a process that dies at a statement. With
`MILLSTREAM_ALL_POINTS=1` every statement is tried with the fault before, after and during it; otherwise every second
statement is tried with one of these in turn."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

import pytest

from millstream.cluster.job_events import EpochDone, RescaleDone
from millstream.common import Row, Types, WatermarkStrategy
from millstream.connectors.jdbc import commit_records, driver
from millstream.connectors.jdbc.prepared import list_prepared
from millstream.datastream import KeyedProcessFunction
from millstream.datastream.connectors.jdbc import JdbcExactlyOnceOptions, JdbcExecutionOptions, JdbcSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor
from millstream.job.job_status import JobStatus
from millstream_chaos.simulation import Setup, World, run

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
SAVED = "/savepoints"
LAST = 48
EXPECTED = [(n, f"{n % 5}: {(n - n % 5) // 5 + (n % 5 > 0)}") for n in range(1, LAST + 1)]
WAYS = [(how, dies) for how in ("before", "after", "torn") for dies in (False, True)]


class Numbered(KeyedProcessFunction):
    """Each number, and the count of its key so far: state that a rescale must keep."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield Row(value, f"{value % 5}: {count}")


@pytest.fixture
def items(database):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
    return lambda: database.execute("SELECT id, name FROM items ORDER BY id")


def prepared(database):
    once = JdbcExecutionOptions.builder().with_max_retries(0).build()
    options = JdbcExactlyOnceOptions(max_commit_attempts=1, timeout_sec=1)
    insert = "INSERT INTO items (id, name) VALUES (?, ?)"
    return JdbcSink.exactly_once_sink(insert, ROWS, database.options, once, options)


def staged(database):
    builder = JdbcSink.builder().with_table("items", ROWS, ["id"]).with_staging()
    return builder.build_exactly_once(database.options, JdbcExactlyOnceOptions(max_commit_attempts=1))


def setup_of(sink, every):
    def program(environment):
        source = NumberSequenceSource(1, LAST)
        numbers = environment.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
        rows = numbers.uid("numbers").key_by(lambda n: n % 5, Types.LONG()).process(Numbered(), ROWS).uid("numbered")
        rows.sink_to(sink).uid("database")
        return rows

    strategy = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "20"}
    return Setup(program, epoch_records=4, checkpoint_every=every, options=strategy)


@dataclass
class Script:
    """Rescales the job after an epoch and stops it with a savepoint after its fifth; notes which statements were done
    meanwhile."""

    faults: object
    rescale_after: int
    points: set[int] = field(default_factory=set)
    since: int | None = None
    rescaled: bool = False
    asked: bool = False

    def __call__(self, observation, master):
        if isinstance(observation, RescaleDone):
            self.end()
        if isinstance(observation, EpochDone) and observation.epoch >= self.rescale_after and not self.rescaled:
            self.rescaled, self.since = True, self.faults.count
            master.rescale(3)
        if isinstance(observation, EpochDone) and observation.epoch >= 5 and not self.asked:
            self.asked, self.since = True, self.faults.count
            master.savepoint(SAVED, stop=True)

    def end(self):
        if self.since is not None:
            self.points.update(range(self.since, self.faults.count))
        self.since = None


def run_through_crashes(setup, world, script, complete):
    """Run the job to its end through crashes, then a job that starts from its savepoint."""
    for _ in range(20):
        life = run(setup, world, listen=script)
        if not life.crashed:
            break
        driver.forget_idle()
    assert life.status is JobStatus.FINISHED, life.failure
    script.end()
    made = world.disk.list(SAVED) if world.disk.exists(SAVED) else []
    whole = [name for name in made if world.disk.exists(f"{SAVED}/{name}/_metadata")]
    if whole and not complete():  # it reaches its end if it died before it had stopped
        resumed = {**setup.options, "execution.state-recovery.path": f"{SAVED}/{max(whole)}"}
        for _ in range(20):
            life = run(replace(setup, job="resumed", parallelism=1, options=resumed), world)
            if not life.crashed:
                break
            driver.forget_idle()
        assert life.status is JobStatus.FINISHED, life.failure


@pytest.mark.parametrize("make", [prepared, staged])
def test_staged_output_survives_a_rescale_after_any_epoch(database, items, faults, make):
    sink = make(database)
    sink.check()
    for every, epoch in ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (3, 4)):
        for table in ("items", commit_records.TABLE):
            database.execute(f"TRUNCATE {table}")
        with World() as world:
            life = run(setup_of(sink, every), world, listen=Script(faults, epoch, asked=True))
        assert life.status is JobStatus.FINISHED, (every, epoch, life.failure)
        assert items() == EXPECTED, (every, epoch)
        assert list_prepared(database.url) == [], (every, epoch)
        assert [each.slots for each in life.seen if isinstance(each, RescaleDone)] == [3]


@pytest.mark.parametrize(("make", "every", "rescale_after"), [(prepared, 2, 3), (staged, 3, 2)])
def test_a_crash_at_any_statement_of_rescale_savepoint_and_recovery(
    database, items, faults, make, every, rescale_after
):
    """The primary key refuses repeated rows; visible rows are read from the database. Output is staged while the job is
    rescaled."""
    sink = make(database)
    sink.check()
    setup = setup_of(sink, every)
    faults.arm(-1)
    script = Script(faults, rescale_after)
    with World() as world:
        run_through_crashes(setup, world, script, lambda: items() == EXPECTED)
    assert items() == EXPECTED
    # the job that starts from the savepoint: it commits again first
    resuming = range(max(script.points) + 1, faults.count)
    points = sorted(script.points) + list(resuming)[:12]
    assert len(points) > 30
    stride, ways = (1, len(WAYS)) if os.environ.get("MILLSTREAM_ALL_POINTS") else (2, 1)
    broken = []
    for place, at in enumerate(points[::stride]):
        for way in range(ways):
            how, dies = WAYS[(place + way) % len(WAYS)]
            for table in ("items", commit_records.TABLE):
                database.execute(f"TRUNCATE {table}")
            faults.arm(at, after=how == "after", torn=how == "torn", dies=dies)
            with World() as world:
                run_through_crashes(setup, world, Script(faults, rescale_after), lambda: items() == EXPECTED)
            told = f"{how} {faults.broken}{', the process died' if dies else ''}"
            faults.disarm()
            assert items() == EXPECTED, told
            assert list_prepared(database.url) == [], told
            broken.append(told)
    words = " ".join(broken)
    assert ("PREPARE TRANSACTION" in words and "COMMIT PREPARED" in words) or ("COPY" in words and "COMMIT" in words)
