"""A Kafka cluster of several brokers for tests.

    with KafkaCluster() as cluster:
        cluster.create_topic("orders", partitions=2)
        cluster.brokers[0].kill()                # partitions that it led get another leader
        cluster.brokers[0].start()

Promises: each topic, internal ones included, has a replica on each broker, and at least two acknowledge a write, so one
broker may be down at any time.
Does not know: millstream's connector."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.connectors.kafka.client import admin_library, library
from millstream.testing.kafka import BrokerFailed, KafkaBroker, free_ports

if TYPE_CHECKING:
    from confluent_kafka import Message

_LEADER_SECONDS = _ANSWER_SECONDS = 60.0


class KafkaCluster:
    """A cluster of `count` brokers, each of which is also a controller; use it in a `with` statement."""

    def __init__(self, count: int = 3, settings: Mapping[str, str] | None = None) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="millstream-kafka-cluster-"))
        ports = free_ports(count)
        voters = {node: f"127.0.0.1:{port}" for node, port in enumerate(ports, start=1)}
        replicated = {
            "default.replication.factor": str(count),
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": str(count),
            "transaction.state.log.replication.factor": str(count),
            "transaction.state.log.min.isr": "2",
            "replica.lag.time.max.ms": "3000",
            "controller.quorum.election.timeout.ms": "500",
            "controller.quorum.fetch.timeout.ms": "1000",
        }
        self.count = count
        self.brokers = [
            KafkaBroker(
                replicated | dict(settings or {}),
                directory=str(self._directory / f"broker-{node}"),
                node=node,
                voters=voters,
            )
            for node in voters
        ]
        self.bootstrap_servers = ",".join(broker.bootstrap_servers for broker in self.brokers)

    def __enter__(self) -> KafkaCluster:
        try:
            for broker in self.brokers:
                broker.launch()
            for broker in self.brokers:
                broker.await_up()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all brokers and delete their files."""
        for broker in self.brokers:
            with contextlib.suppress(BrokerFailed):
                broker.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Create a topic with a replica on each broker and return its name."""
        return self.brokers[0].create_topic(name, partitions, config, replicas=self.count)

    def produce(self, topic: str, values: Iterable[str | bytes | None], *, partition: int = -1) -> None:
        """Write records; all brokers must be up."""
        self.brokers[0].produce(topic, values, partition=partition)

    def read(self, topic: str) -> list[Message]:
        """Return all committed records of a topic, partition by partition."""
        return self.brokers[0].read(topic)

    def leader(self, topic: str, partition: int) -> KafkaBroker:
        """Wait until a partition has a leader and return that broker."""
        deadline = time.monotonic() + _LEADER_SECONDS
        while time.monotonic() < deadline:
            node: int = self._partition(topic, partition).leader
            if node > 0:
                return self.brokers[node - 1]
            time.sleep(0.1)
        raise BrokerFailed(why=f"did not elect a leader of {topic}/{partition}", log=self.brokers[0].log)

    def in_sync(self, topic: str, partition: int) -> int:
        """Return how many replicas of a partition are in sync."""
        return len(self._partition(topic, partition).isrs)

    def _partition(self, topic: str, partition: int) -> Any:
        """Return the metadata of a partition from the first broker that answers."""
        settings = {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "socket.timeout.ms": 1000}
        deadline = time.monotonic() + _ANSWER_SECONDS
        while True:
            try:
                metadata = admin_library().AdminClient(settings).list_topics(topic, timeout=3)
                return metadata.topics[topic].partitions[partition]
            except library().KafkaException:
                if time.monotonic() > deadline:
                    raise
