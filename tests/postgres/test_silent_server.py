"""A database that is reached and does not answer any more, and comes back."""

from __future__ import annotations

import threading
import time
from urllib.parse import urlsplit

import pytest

from millstream.cluster import entrypoint
from millstream.common import Configuration, Row, Types, WatermarkStrategy
from millstream.connectors.jdbc import driver
from millstream.connectors.jdbc.driver import DatabaseFailure, Session
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import JdbcExactlyOnceOptions, JdbcExecutionOptions, JdbcSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.model.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine
from millstream.testing.proxy import Proxy

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])


@pytest.fixture
def proxy(database):
    parts = urlsplit(database.url)
    with Proxy(parts.hostname, parts.port) as running:
        yield running
        running.mend()
        driver.forget_idle()


def through(database, proxy) -> JdbcConnectionOptions:
    """The database, by way of the proxy."""
    parts = urlsplit(database.url)
    login = parts.netloc.rpartition("@")[0]
    address = f"{login}@127.0.0.1:{proxy.port}" if login else f"127.0.0.1:{proxy.port}"
    return JdbcConnectionOptions(f"jdbc:{parts._replace(netloc=address).geturl()}")


def test_a_connection_notices_by_itself_that_nobody_is_there(database):
    connection = driver.connected(database.options.conninfo())
    given = connection.info.get_parameters()
    connection.close()
    assert (given["tcp_user_timeout"], given["keepalives_idle"]) == ("60000", "30")
    url = "jdbc:postgresql://host/db?tcpKeepAlive=false&socketTimeout=7&connectTimeout=3"
    assert JdbcConnectionOptions(url).conninfo() == (
        "postgresql://host/db?keepalives=0&tcp_user_timeout=7000&connect_timeout=3"
    )


def test_a_call_that_waits_for_a_silent_server_can_be_interrupted(database, proxy):
    session = Session(through(database, proxy).conninfo())
    assert session.query("cannot ask", "SELECT 1") == [(1,)]
    proxy.silence()
    failures = []

    def ask() -> None:
        try:
            session.query("cannot ask", "SELECT 2")
        except DatabaseFailure as problem:
            failures.append(problem)

    asking = threading.Thread(target=ask)
    asking.start()
    session.interrupt()
    asking.join(20)
    assert not asking.is_alive()
    proxy.mend()
    assert session.query("cannot ask", "SELECT 3") == [(3,)]
    assert len(failures) == 1


def test_a_job_whose_database_falls_silent_during_a_commit_goes_on_when_it_is_back(database, proxy, tmp_path):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.timeout": "1 s",
        "millstream.epoch.max-records": "10",
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "50 ms",
        "restart-strategy.exponential-delay.max-backoff": "200 ms",
    }.items():
        configuration.set_string(key, value)
    options = JdbcExactlyOnceOptions(max_commit_attempts=1)
    sink = JdbcSink.exactly_once_sink(
        "INSERT INTO items (id, name) VALUES (?, ?)",
        ROWS,
        through(database, proxy),
        JdbcExecutionOptions.builder().with_max_retries(0).build(),
        options,
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    source = env.from_source(NumberSequenceSource(0, 99), WatermarkStrategy.no_watermarks(), "numbers")
    source.map(lambda v: Row(v, str(v)), ROWS).sink_to(sink).name("items")
    silenced = threading.Event()

    def listen(_: object) -> None:
        """After an epoch is accepted its checkpoint is taken and its output committed: the link falls silent there."""
        if not silenced.is_set() and job and len(job[0].epochs) >= 3:
            proxy.silence()
            silenced.set()

    job: list[entrypoint.RunningJob] = []
    job.append(entrypoint.submit(env._graph(), configuration, "silent", engine=InlineEngine(), listeners=[listen]))
    deadline = time.monotonic() + 60
    while "did not commit the output of checkpoint" not in (job[0].master.job.cause or ""):
        assert time.monotonic() < deadline, job[0].master.job
        assert not job[0].wait(0), job[0].master.failure
        time.sleep(0.01)
    proxy.mend()
    assert job[0].wait(60)
    assert job[0].master.job.status is JobStatus.FINISHED
    assert database.execute("SELECT id FROM items ORDER BY id") == [(number,) for number in range(100)]
    assert database.execute("SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database()") == [(0,)]
