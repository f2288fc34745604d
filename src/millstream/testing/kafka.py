"""A real Apache Kafka broker for tests: a KRaft node on loopback by default, which can be stopped, killed and started.

    with KafkaBroker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.produce("orders", ["a", "b"])

Promises: ports are free ones of its host, files are in a temporary directory that goes with the broker;
`start` returns when the broker answers; after `kill` and `start` it has its topics and its address again.
Does not know: millstream's connector."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from millstream.connectors.kafka.client import admin_library, library
from millstream.errors import ExternalError
from millstream.testing.guarded import guarded
from millstream.testing.kafka_jars import VERSION, jars, java
from millstream.testing.kafka_security import PROTOCOLS, SecureListeners
from millstream.testing.network import LOCALHOST, Host

if TYPE_CHECKING:
    from confluent_kafka import Message

_UP_SECONDS = 60.0
_UNSENT = 50_000  # records that a producer may hold, of the 100,000 that it can
_CLUSTER = "bWlsbHN0cmVhbS10ZXN0cw"  # any 16 bytes
_SETTINGS = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners={listeners},CONTROLLER://{address}:{controller}
advertised.listeners={listeners}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,{protocols}
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=1
auto.create.topics.enable=false
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.ms=-1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


class BrokerFailed(ExternalError):
    """The broker did not start."""

    def __init__(self, why: str, log: Path) -> None:
        lines = log.read_text(errors="replace").splitlines()[-5:] if log.exists() else []
        super().__init__(f"the Kafka broker {why}: {' / '.join(lines) or 'it said nothing'}", hint=f"see {log}")


class KafkaBroker:
    """A broker of its own process. `settings` are added to its server.properties.

    With `users`, names and passwords, it also listens for clients that log in, encrypt, or both: see `connection`.
    `quick_start` compiles less of the broker's code: it is up sooner, and slower in the long run. A broker of a cluster
    has a `node` number, and knows the addresses of all controllers as `voters`; see `kafka_cluster`."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        users: Mapping[str, str] | None = None,
        version: str = VERSION,
        heap: str = "384m",
        quick_start: bool = True,
        directory: str | None = None,
        host: Host = LOCALHOST,
        node: int = 1,
        voters: Mapping[int, str] | None = None,
    ) -> None:
        self._version, self._heap, self._quick, self._host = version, heap, quick_start, host
        self._own = directory is None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="millstream-kafka-"))
        self.port, controller, *more = free_ports(2 + len(PROTOCOLS))
        if voters is not None:
            controller = int(voters[node].rpartition(":")[2])
        self.bootstrap_servers = f"{host.address}:{self.port}"
        self.log = self.directory / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: Any = None
        self.directory.mkdir(parents=True, exist_ok=True)
        self._secure = SecureListeners(self.directory, more, users) if users else None
        listeners, protocols = f"PLAINTEXT://{host.address}:{self.port}", ("PLAINTEXT", *PROTOCOLS)
        if self._secure is not None:
            self._secure.make_certificates()
            listeners += f",{self._secure.listeners()}"
        text = _SETTINGS.format(
            listeners=listeners,
            protocols=",".join(f"{each}:{each}" for each in protocols),
            node=node,
            address=host.address,
            voters=",".join(f"{n}@{at}" for n, at in (voters or {node: f"{host.address}:{controller}"}).items()),
            controller=controller,
            data=self.directory / "data",
        )
        text += self._secure.server_properties() if self._secure is not None else ""
        text += "".join(f"{key}={value}\n" for key, value in (settings or {}).items())
        (self.directory / "server.properties").write_text(text)

    # ------------------------------------------------------------------------------------------------- its life

    def start(self) -> KafkaBroker:
        """Start the process; returns when the broker answers."""
        self.launch()
        self.await_up()
        return self

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        if not (self.directory / "data").exists():
            self._format()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                guarded(self._command("kafka.Kafka", str(self.directory / "server.properties")), "broker.pid"),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,
            )

    def stop(self) -> None:
        """End the broker in good order."""
        self._end(kill=False)

    def kill(self) -> None:
        """End the broker as a power cut would."""
        self._end(kill=True)

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def close(self) -> None:
        """End the broker for good and remove its files."""
        self.kill()
        if self._own:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> KafkaBroker:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The broker's process, while there is one."""
        return None if self._process is None else int((self.directory / "broker.pid").read_text())

    def _command(self, main: str, *arguments: str) -> list[str]:
        flags = [f"-Xmx{self._heap}", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true"]
        flags += ["-XX:TieredStopAtLevel=1"] if self._quick else []
        return self._host.command(java(), *flags, "-cp", f"{jars(self._version)}/*", main, *arguments)

    def _format(self) -> None:
        settings = str(self.directory / "server.properties")
        known = self._secure.format_arguments() if self._secure is not None else []
        command = self._command("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", settings, *known)
        done = subprocess.run(command, capture_output=True, timeout=_UP_SECONDS, check=False, cwd=self.directory)
        if done.returncode != 0:
            self.log.write_bytes(done.stdout + done.stderr)
            raise BrokerFailed(why="could not format its storage", log=self.log)

    def await_up(self) -> None:
        """Wait until the broker answers."""
        process, deadline = self._process, time.monotonic() + _UP_SECONDS
        assert process is not None
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise BrokerFailed(why=f"ended with status {process.returncode}", log=self.log)
            if _listens(self._host.address, self.port) and self._answers():
                return
            time.sleep(0.05)
        self.kill()
        raise BrokerFailed(why=f"was not up after {_UP_SECONDS:g} s", log=self.log)

    def _answers(self) -> bool:
        try:
            return bool(self.admin().list_topics(timeout=2).brokers)
        except library().KafkaException:
            return False

    def _end(self, *, kill: bool) -> None:
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended already
            os.kill(self.pid or 0, signal.SIGKILL if kill else signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.stdin.close()
            process.wait()
        process.stdin.close()
        self._process = None

    # ------------------------------------------------------------------------------------------- topics and records

    def admin(self) -> Any:
        """A `confluent_kafka.admin.AdminClient` of this broker."""
        if self._admin is None:
            self._admin = admin_library().AdminClient(self._client())
        return self._admin

    def _client(self, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, **more}

    def connection(self, protocol: str, mechanism: str = "SCRAM-SHA-512", user: str | None = None) -> dict[str, str]:
        """The properties of a client that comes over SSL, SASL_PLAINTEXT or SASL_SSL, as Java's client names them; the
        first user's, if none is named."""
        assert self._secure is not None, "a broker with users"
        return self._secure.connection(protocol, mechanism, user)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None, *, replicas: int = 1
    ) -> str:
        """Make a topic; gives its name when the broker knows it and leads its partitions."""
        topic = admin_library().NewTopic(
            name, num_partitions=partitions, replication_factor=replicas, config=dict(config or {})
        )
        for done in self.admin().create_topics([topic]).values():
            done.result(30)
        self._await_partitions(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        """Give a topic more partitions: `total` in all."""
        more = admin_library().NewPartitions(topic, total)
        for done in self.admin().create_partitions([more]).values():
            done.result(30)
        self._await_partitions(topic, total)

    def _await_partitions(self, topic: str, count: int) -> None:
        """Made is not yet known: the broker hears of it from its controller, late when the machine is busy."""
        deadline = time.monotonic() + _UP_SECONDS
        while time.monotonic() < deadline:
            found = self.admin().list_topics(topic, timeout=30).topics[topic].partitions
            if len(found) == count and all(each.leader >= 0 for each in found.values()):
                return
            time.sleep(0.02)
        raise BrokerFailed(why=f"did not make topic {topic} within {_UP_SECONDS:g} s", log=self.log)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Truncate a partition: records before that offset are gone."""
        where = library().TopicPartition(topic, partition, before)
        for done in self.admin().delete_records([where]).values():
            done.result(30)

    def produce(
        self,
        topic: str,
        values: Iterable[str | bytes | None],
        *,
        key: str | bytes | None = None,
        partition: int = -1,
        timestamps: Sequence[int] | None = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
        transaction: str | None = None,
        commit: bool = True,
    ) -> None:
        """Write records; in a transaction of that id, which is committed or aborted."""
        producer = library().Producer(self._client(**({"transactional.id": transaction} if transaction else {})))
        if transaction:
            producer.init_transactions(30)
            producer.begin_transaction()
        for index, value in enumerate(values):
            at = timestamps[index] if timestamps is not None else 0
            producer.produce(topic, value, key, partition, timestamp=at, headers=list(headers) if headers else None)
            producer.poll(0 if len(producer) < _UNSENT else 0.1)
        left = producer.flush(30)
        if left:
            raise BrokerFailed(why=f"did not take {left} records", log=self.log)
        if transaction and commit:
            producer.commit_transaction(30)
        elif transaction:
            producer.abort_transaction(30)

    def read(self, topic: str, isolation: str = "read_committed", timeout: float = 30.0) -> list[Message]:
        """All records of a topic up to its end, partition by partition."""
        kafka = library()
        settings = {"group.id": "reading", "enable.partition.eof": True, "isolation.level": isolation}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        settings |= {"fetch.wait.max.ms": 10, "fetch.error.backoff.ms": 20}  # the end is waited for
        consumer = kafka.Consumer(self._client(**settings))
        found: list[Message] = []
        try:
            partitions = sorted(consumer.list_topics(topic, timeout=timeout).topics[topic].partitions)
            consumer.assign([kafka.TopicPartition(topic, partition, 0) for partition in partitions])
            ended: set[int] = set()
            deadline = time.monotonic() + timeout
            while len(ended) < len(partitions):
                if time.monotonic() > deadline:
                    raise BrokerFailed(why=f"did not give all of {topic} within {timeout:g} s", log=self.log)
                for message in consumer.consume(1000, timeout=0.05):
                    problem = message.error()
                    if problem is None:
                        found.append(message)
                    elif problem.code() == kafka.KafkaError._PARTITION_EOF:
                        ended.add(message.partition() or 0)
        finally:
            consumer.close()
        return sorted(found, key=lambda message: message.partition() or 0)

    def values(self, topic: str, isolation: str = "read_committed") -> list[str]:
        """The values of a topic as text."""
        return [(message.value() or b"").decode() for message in self.read(topic, isolation)]


def free_ports(count: int) -> list[int]:
    """Ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _listens(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0
