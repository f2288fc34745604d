"""A replica that lacks the newest transactions becomes the primary: a clear error, and no silent loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from millstream.cluster import entrypoint
from millstream.cluster.job_events import CheckpointDone
from millstream.common import Configuration, JobStatus, Row, Types, WatermarkStrategy
from millstream.connector.sink import WriterContext
from millstream.connectors.jdbc import driver
from millstream.connectors.jdbc.commit_records import CommittedOutputGone, OutputLost
from millstream.connectors.jdbc.options import JdbcConnectionOptions, JdbcExactlyOnceOptions, JdbcExecutionOptions
from millstream.connectors.jdbc.sink import JdbcSink
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.testing.inline_engine import InlineEngine
from millstream.testing.postgres import PostgresServer, postgres_server

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
ONCE = JdbcExecutionOptions.builder().with_max_retries(0).build()
OPTIONS = JdbcExactlyOnceOptions(max_commit_attempts=1)


@dataclass
class Primary:
    """The server that the address currently leads to."""

    server: PostgresServer
    replica: PostgresServer | None = None

    def detach_replica(self) -> None:
        """From now on the replica receives nothing."""
        self.replica = self.server.replicate()

    def fail_over(self) -> None:
        assert self.replica is not None
        self.server.stop(kill=True)
        driver.forget_idle()
        self.replica.start()

    def ids(self) -> list[int]:
        living = self.replica if self.server._process is None else self.server
        return [row[0] for row in living.execute("SELECT id FROM items ORDER BY id")]


@pytest.fixture
def primary() -> Iterator[Primary]:
    with postgres_server() as server:
        server.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
        primary = Primary(server)
        yield primary
        driver.forget_idle()
        if primary.replica is not None:
            primary.replica.remove()


def prepared(primary: Primary) -> JdbcSink:
    options = JdbcConnectionOptions(f"jdbc:{primary.server.url}")
    sql = "INSERT INTO items (id, name) VALUES (?, ?)"
    return JdbcSink.exactly_once_sink(sql, ROWS, options, ONCE, OPTIONS)


def staged(primary: Primary) -> JdbcSink:
    options = JdbcConnectionOptions(f"jdbc:{primary.server.url}")
    return JdbcSink.builder().with_table("items", ROWS, ("id",)).with_staging().build_exactly_once(options, OPTIONS)


def write(sink: JdbcSink, epoch: int) -> list:
    writer = sink.create_writer(WriterContext("job", "sink", 0, 1, epoch, "0-a", 0))
    writer.write([Row(epoch, "row")], None)
    committables = writer.prepare_commit()
    writer.close()
    return committables


@pytest.mark.parametrize("make", [prepared, staged])
def test_output_that_was_staged_on_the_old_primary_is_an_error(primary, make) -> None:
    sink = make(primary)
    committer = sink.create_committer()
    committer.commit(1, write(sink, 1))
    primary.detach_replica()
    committables = write(sink, 2)
    committer.close()
    primary.fail_over()
    with pytest.raises(OutputLost, match="is not committed, and cannot be"):
        sink.create_committer().commit(2, committables)
    assert primary.ids() == [1]


@pytest.mark.parametrize("make", [prepared, staged])
def test_committed_output_that_the_new_primary_lacks_is_an_error(primary, make) -> None:
    sink = make(primary)
    committer = sink.create_committer()
    committer.commit(1, write(sink, 1))
    primary.detach_replica()
    committer.commit(2, write(sink, 2))
    assert primary.ids() == [1, 2]
    committer.close()
    primary.fail_over()
    later = write(sink, 3)
    with pytest.raises(CommittedOutputGone, match="has lost 1 committed transactions"):
        committer.commit(3, later)
    assert primary.ids() == [1]


def test_the_job_fails_with_the_reason(primary, tmp_path) -> None:
    settings = {
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.interval": "1 ms",
        "millstream.epoch.max-records": "10",
        "parallelism.default": "1",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    environment = StreamExecutionEnvironment.get_execution_environment(configuration)
    numbers = environment.from_source(NumberSequenceSource(1, 100), WatermarkStrategy.no_watermarks(), "n").uid("n")
    numbers.map(lambda number: Row(number, "row"), ROWS).uid("rows").sink_to(prepared(primary)).uid("items")

    def listen(event: object) -> None:
        if isinstance(event, CheckpointDone) and event.id == 2:
            primary.detach_replica()
        elif isinstance(event, CheckpointDone) and event.id == 4:
            primary.fail_over()

    running = entrypoint.submit(environment._graph(), configuration, "job", InlineEngine(), [listen])
    assert running.wait(60)
    assert running.master.job.status is JobStatus.FAILED
    assert isinstance(running.master.failure, OutputLost | CommittedOutputGone)
    assert primary.ids() == list(range(1, 21))
