"""A real Apache Kafka broker for tests: one KRaft node, on loopback by default.

    with KafkaBroker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.produce("orders", ["a", "b"])

Promises: the broker listens on free ports and keeps its files in a temporary directory, which `close` deletes;
`start` returns when the broker answers; after `kill` and `start` it has the same topics and the same address.
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
from millstream.testing.guarded import build_guarded_command
from millstream.testing.host import LOCALHOST, Host
from millstream.testing.kafka_jars import VERSION, jars
from millstream.testing.kafka_security import PROTOCOLS, SecureListeners
from millstream.testing.maven import java

if TYPE_CHECKING:
    from confluent_kafka import Message

_UP_SECONDS = 60.0
_UNSENT = 50_000  # the number of records in the producer's queue, whose limit is 100,000
_CLUSTER = "bWlsbHN0cmVhbS10ZXN0cw"  # an arbitrary cluster id of 16 bytes
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
    """The broker did not start, or a request to it failed."""

    def __init__(self, why: str, log: Path) -> None:
        lines = log.read_text(errors="replace").splitlines()[-5:] if log.exists() else []
        super().__init__(f"the Kafka broker {why}: {' / '.join(lines) or 'its log is empty'}", hint=f"see {log}")


class KafkaBroker:
    """A Kafka broker in a process of its own, which ends with this process.

    Use it in a `with` statement, or call `start` and `close`.

    Args:
        settings: Lines of server.properties beside the usual ones.
        users: Names and passwords. With users, the broker also has listeners with SASL and TLS; see `connection`.
        version: The version of Kafka. Its jars are downloaded once.
        heap: The size of the JVM's heap.
        quick_start: Whether the JVM compiles less code: the broker starts sooner, and is slower in the long run.
        directory: Where the broker keeps its files; without it, a temporary directory.
        host: Where the broker runs.
        node: The number of the broker in a cluster; see `KafkaCluster`.
        voters: The addresses of all controllers of a cluster, by node.

    """

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
            protocols=",".join(f"{protocol}:{protocol}" for protocol in protocols),
            node=node,
            address=host.address,
            voters=",".join(f"{n}@{at}" for n, at in (voters or {node: f"{host.address}:{controller}"}).items()),
            controller=controller,
            data=self.directory / "data",
        )
        text += self._secure.server_properties() if self._secure is not None else ""
        text += "".join(f"{key}={value}\n" for key, value in (settings or {}).items())
        (self.directory / "server.properties").write_text(text)

    # ------------------------------------------------------------------------------------------- start and stop

    def start(self) -> KafkaBroker:
        """Start the process and wait until the broker answers.

        Raises:
            BrokerFailed: The process ended, or does not answer.

        """
        self.launch()
        self.await_up()
        return self

    def launch(self) -> None:
        """Start the process without waiting for it."""
        if not (self.directory / "data").exists():
            self._format()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                build_guarded_command(
                    self._build_command("kafka.Kafka", str(self.directory / "server.properties")), "broker.pid"
                ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Stop the broker with SIGTERM; it writes its state first."""
        self._end(kill=False)

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self._end(kill=True)

    def restart(self) -> None:
        """Stop the broker and start it again."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Kill the broker and delete its files."""
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
        self, error_type: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id of the broker; None if it is stopped."""
        return None if self._process is None else int((self.directory / "broker.pid").read_text())

    def _build_command(self, main: str, *arguments: str) -> list[str]:
        flags = [f"-Xmx{self._heap}", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.awt.headless=true"]
        flags += ["-XX:TieredStopAtLevel=1"] if self._quick else []
        return self._host.command(java(), *flags, "-cp", f"{jars(self._version)}/*", main, *arguments)

    def _format(self) -> None:
        settings = str(self.directory / "server.properties")
        credentials = self._secure.format_arguments() if self._secure is not None else []
        command = self._build_command("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", settings, *credentials)
        process = subprocess.run(command, capture_output=True, timeout=_UP_SECONDS, check=False, cwd=self.directory)
        if process.returncode != 0:
            self.log.write_bytes(process.stdout + process.stderr)
            raise BrokerFailed(why="could not format its storage", log=self.log)

    def await_up(self) -> None:
        """Wait until the broker answers."""
        process, deadline = self._process, time.monotonic() + _UP_SECONDS
        assert process is not None
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise BrokerFailed(why=f"ended with status {process.returncode}", log=self.log)
            if _is_listening(self._host.address, self.port) and self._answers():
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
        with contextlib.suppress(OSError, ValueError):  # the process has ended already
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
        """Return a `confluent_kafka.admin.AdminClient` of this broker."""
        if self._admin is None:
            self._admin = admin_library().AdminClient(self._create_client())
        return self._admin

    def _create_client(self, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, **more}

    def connection(self, protocol: str, mechanism: str = "SCRAM-SHA-512", user: str | None = None) -> dict[str, str]:
        """Return the properties of a client that connects with TLS or SASL, with the names of the Java client.

        Args:
            protocol: SSL, SASL_PLAINTEXT or SASL_SSL.
            mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
            user: The name of the user; the first one by default.

        """
        assert self._secure is not None, "the broker has no users"
        return self._secure.connection(protocol, mechanism, user)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None, *, replicas: int = 1
    ) -> str:
        """Create a topic, wait until each of its partitions has a leader, and return its name."""
        topic = admin_library().NewTopic(
            name, num_partitions=partitions, replication_factor=replicas, config=dict(config or {})
        )
        for future in self.admin().create_topics([topic]).values():
            future.result(30)
        self._await_partitions(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        """Increase the number of partitions of a topic to `total`."""
        partitions = admin_library().NewPartitions(topic, total)
        for future in self.admin().create_partitions([partitions]).values():
            future.result(30)
        self._await_partitions(topic, total)

    def _await_partitions(self, topic: str, count: int) -> None:
        """Wait until each partition has a leader; the broker learns of a topic from its controller, with a delay."""
        deadline = time.monotonic() + _UP_SECONDS
        while time.monotonic() < deadline:
            partitions = self.admin().list_topics(topic, timeout=30).topics[topic].partitions
            if len(partitions) == count and all(partition.leader >= 0 for partition in partitions.values()):
                return
            time.sleep(0.02)
        raise BrokerFailed(why=f"did not create topic {topic} within {_UP_SECONDS:g} s", log=self.log)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Delete the records of a partition that are before an offset."""
        offset = library().TopicPartition(topic, partition, before)
        for future in self.admin().delete_records([offset]).values():
            future.result(30)

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
        """Write records.

        Args:
            topic: The topic.
            values: The values of the records; None is a tombstone.
            key: The key of all records.
            partition: The partition; -1 lets the producer choose.
            timestamps: The timestamp of each record, in milliseconds.
            headers: The headers of all records.
            transaction: A transactional id: all records are written in one transaction.
            commit: Whether the transaction is committed; otherwise it is aborted.

        """
        producer = library().Producer(self._create_client(**({"transactional.id": transaction} if transaction else {})))
        if transaction:
            producer.init_transactions(30)
            producer.begin_transaction()
        for index, value in enumerate(values):
            at = timestamps[index] if timestamps is not None else 0
            producer.produce(topic, value, key, partition, timestamp=at, headers=list(headers) if headers else None)
            producer.poll(0 if len(producer) < _UNSENT else 0.1)
        unsent = producer.flush(30)
        if unsent:
            raise BrokerFailed(why=f"did not accept {unsent} records", log=self.log)
        if transaction and commit:
            producer.commit_transaction(30)
        elif transaction:
            producer.abort_transaction(30)

    def read(self, topic: str, isolation: str = "read_committed", timeout: float = 30.0) -> list[Message]:
        """Return all records of a topic, partition by partition, as `confluent_kafka.Message`."""
        kafka = library()
        settings = {"group.id": "reading", "enable.partition.eof": True, "isolation.level": isolation}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        # the consumer reports the end of a partition
        settings |= {"fetch.wait.max.ms": 10, "fetch.error.backoff.ms": 20}
        consumer = kafka.Consumer(self._create_client(**settings))
        messages: list[Message] = []
        try:
            partitions = sorted(consumer.list_topics(topic, timeout=timeout).topics[topic].partitions)
            consumer.assign([kafka.TopicPartition(topic, partition, 0) for partition in partitions])
            ended: set[int] = set()
            deadline = time.monotonic() + timeout
            while len(ended) < len(partitions):
                if time.monotonic() > deadline:
                    raise BrokerFailed(why=f"did not return all records of {topic} within {timeout:g} s", log=self.log)
                for message in consumer.consume(1000, timeout=0.05):
                    problem = message.error()
                    if problem is None:
                        messages.append(message)
                    elif problem.code() == kafka.KafkaError._PARTITION_EOF:
                        ended.add(message.partition() or 0)
        finally:
            consumer.close()
        return sorted(messages, key=lambda message: message.partition() or 0)

    def values(self, topic: str, isolation: str = "read_committed") -> list[str]:
        """Return the values of all records of a topic as text."""
        return [(message.value() or b"").decode() for message in self.read(topic, isolation)]


def free_ports(count: int) -> list[int]:
    """Return ports that are free now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [int(bound.getsockname()[1]) for bound in sockets]
    finally:
        for bound in sockets:
            bound.close()


def _is_listening(address: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0
