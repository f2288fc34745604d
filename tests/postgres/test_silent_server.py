"""A database that stops answering while its connections stay open, and answers again later."""

from __future__ import annotations

import threading
import time
from urllib.parse import urlsplit

import pytest

from millstream.cluster import entrypoint
from millstream.cluster.job_events import EpochDone
from millstream.common import Configuration, Row, Types, WatermarkStrategy
from millstream.connectors.jdbc import driver
from millstream.connectors.jdbc.driver import DatabaseFailure, Session
from millstream.connectors.jdbc.options import JdbcConnectionOptions
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.jdbc import JdbcExactlyOnceOptions, JdbcExecutionOptions, JdbcSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine
from millstream_chaos.machine.proxy import Proxy

ROWS = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])


@pytest.fixture
def proxy(database):
    parts = urlsplit(database.url)
    with Proxy(parts.hostname, parts.port) as running:
        yield running
        running.repair()
        driver.forget_idle()


def through(database, proxy) -> JdbcConnectionOptions:
    """The database behind the proxy."""
    parts = urlsplit(database.url)
    login = parts.netloc.rpartition("@")[0]
    address = f"{login}@127.0.0.1:{proxy.port}" if login else f"127.0.0.1:{proxy.port}"
    return JdbcConnectionOptions(f"jdbc:{parts._replace(netloc=address).geturl()}")


def test_a_connection_detects_an_unreachable_server(database):
    connection = driver.connect(database.options.conninfo())
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
    proxy.repair()
    assert session.query("cannot ask", "SELECT 3") == [(3,)]
    assert len(failures) == 1


def options_of(directory, **more) -> Configuration:
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": str(directory),
        "execution.checkpointing.interval": "1 ms",
        "millstream.epoch.max-records": "10",
        "restart-strategy.type": "exponential-delay",
        "restart-strategy.exponential-delay.initial-backoff": "50 ms",
        "restart-strategy.exponential-delay.max-backoff": "200 ms",
        **more,
    }.items():
        configuration.set_string(key, value)
    return configuration


def submit(connection: JdbcConnectionOptions, configuration: Configuration, listen) -> entrypoint.RunningJob:
    """A job that writes a hundred rows by prepared transactions."""
    sink = JdbcSink.exactly_once_sink(
        "INSERT INTO items (id, name) VALUES (?, ?)",
        ROWS,
        connection,
        JdbcExecutionOptions.builder().with_max_retries(0).build(),
        JdbcExactlyOnceOptions(max_commit_attempts=1),
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    source = env.from_source(NumberSequenceSource(0, 99), WatermarkStrategy.no_watermarks(), "numbers")
    source.map(lambda v: Row(v, str(v)), ROWS).sink_to(sink).name("items")
    return entrypoint.submit(env._graph(), configuration, "silent", engine=InlineEngine(), listeners=[listen])


def silenced_at_a_commit(proxy):
    """A listener that silences the proxy once, and an event that is set then. It happens after an epoch was accepted,
    just before its checkpoint and the commit of its output."""
    silenced = threading.Event()

    def listen(observation: object) -> None:
        if not silenced.is_set() and isinstance(observation, EpochDone) and observation.epoch == 3:
            proxy.silence()
            silenced.set()

    return listen, silenced


def prepared(database) -> list[str]:
    return [gid for (gid,) in database.execute("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()")]


def test_a_job_continues_when_a_silent_database_is_back(database, proxy, tmp_path):
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
    configuration = options_of(tmp_path, **{"execution.checkpointing.timeout": "1 s"})
    job = submit(through(database, proxy), configuration, silenced_at_a_commit(proxy)[0])
    deadline = time.monotonic() + 60
    while "did not commit the output of checkpoint" not in (job.master.job.cause or ""):
        assert time.monotonic() < deadline, job.master.job
        assert not job.wait(0), job.master.failure
        time.sleep(0.01)
    proxy.repair()
    assert job.wait(60)
    assert job.master.job.status is JobStatus.FINISHED
    assert database.execute("SELECT id FROM items ORDER BY id") == [(number,) for number in range(100)]
    assert prepared(database) == []


@pytest.mark.parametrize("comes_back", [True, False], ids=["that comes back", "that stays silent"])
def test_a_job_cancelled_during_a_commit_leaves_no_unnamed_transaction(database, proxy, tmp_path, caplog, comes_back):
    """PostgreSQL keeps the locks of a prepared transaction until it is committed or rolled back."""
    database.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
    listen, silenced = silenced_at_a_commit(proxy)
    times = {} if comes_back else {"task.cancellation.timeout": "500 ms"}
    job = submit(through(database, proxy), options_of(tmp_path, **times), listen)
    assert silenced.wait(60)
    deadline = time.monotonic() + 60
    while not job.master._execution.sinks._committing:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    job.master.cancel()
    if comes_back:
        proxy.repair()
    assert job.wait(60)
    assert job.master.job.status is JobStatus.CANCELED
    kept = sorted(path.name for path in tmp_path.rglob("chk-*"))
    if comes_back:
        assert kept == []
    else:
        assert "chk-3" in kept
        (gid,) = prepared(database)
        assert f"What is left: prepared transactions '{gid}'; COMMIT PREPARED or ROLLBACK PREPARED" in caplog.text
        proxy.repair()
        path = job.master._execution.checkpoints.path_of(3)
        again = submit(database.options, options_of(tmp_path, **{"execution.state-recovery.path": path}), print)
        assert again.wait(60)
        assert again.master.job.status is JobStatus.FINISHED
    last = 30 if comes_back else 100
    assert database.execute("SELECT id FROM items ORDER BY id") == [(number,) for number in range(last)]
    assert prepared(database) == []
