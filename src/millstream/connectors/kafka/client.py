"""The Kafka client library: found, configured, and its failures told in our words.

Promises: Kafka's own property names work, those of the Java client included as far as librdkafka knows their meaning; a
property that means nothing is refused by name. Every failure of the library becomes an error with what was being done.
Does not know: topics, offsets, records."""

from __future__ import annotations

import importlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from millstream.errors import ExternalError, MillstreamError, UserError

_log = logging.getLogger("millstream.kafka")

Result = TypeVar("Result")

DEADLINE = 30.0  # seconds for one request to the brokers

_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.partition.fetch.bytes": "max.partition.fetch.bytes",
    "buffer.memory": "queue.buffering.max.kbytes",
}
_DECIDED = {
    "key.deserializer": "bytes are read, and decoded by the deserialization schema",
    "value.deserializer": "bytes are read, and decoded by the deserialization schema",
    "key.serializer": "the serialization schema makes the bytes",
    "value.serializer": "the serialization schema makes the bytes",
    "enable.auto.commit": "offsets are committed with checkpoints",
    "auto.offset.reset": "a sink reads nothing",
    "max.poll.records": "epochs say how much is read",
    "max.block.ms": "a full buffer is waited for",
    "metric.reporters": "metrics are the job's",
}
_JAVA_STORES = ("ssl.truststore.", "ssl.keystore.")
_LOGIN = re.compile(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


class KafkaLibraryMissing(UserError):
    """The client library is not installed."""

    hint = "pip install 'millstream[kafka]', or confluent-kafka itself, on the driver and all executors"

    def __init__(self) -> None:
        super().__init__("the Kafka connector needs the library confluent-kafka")


class BadKafkaProperty(UserError):
    """A property that the client does not know or take."""

    def __init__(self, name: str, why: str, *, hint: str | None = None) -> None:
        self.name = name
        super().__init__(
            f"Kafka property '{name}' cannot be used: {why}", hint=hint or "librdkafka's CONFIGURATION page lists names"
        )


class BrokerUnreachable(ExternalError):
    """No broker answered."""

    def __init__(self, servers: str, doing: str, reason: str) -> None:
        self.servers = servers
        super().__init__(
            f"no Kafka broker at {servers} answered while {doing}: {reason}",
            hint="are the brokers up, and are the bootstrap servers and the listeners' names right from here?",
        )


class KafkaFailure(ExternalError):
    """The brokers answered with an error."""

    def __init__(self, doing: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{doing} failed: {reason}", hint=hint)


class Fenced(KafkaFailure):
    """Another producer has the transactional id now, or the brokers have ended the transaction."""


def library() -> Any:
    """The module confluent_kafka."""
    return _module("confluent_kafka")


def admin_library() -> Any:
    """The module confluent_kafka.admin."""
    return _module("confluent_kafka.admin")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.split(".")[0] == "confluent_kafka":
            raise KafkaLibraryMissing from None
        raise


def translated(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as librdkafka names them; what the connector decides itself is left out with a warning."""
    made: dict[str, Any] = {}
    for name, value in properties.items():
        if name in _DECIDED:
            _log.warning("Kafka property '%s' has no effect: %s", name, _DECIDED[name])
        elif name == "sasl.jaas.config":
            made.update({f"sasl.{field}": text for field, text in _LOGIN.findall(str(value))})
        elif name.startswith(_JAVA_STORES):
            hint = "give PEM files: ssl.ca.location, ssl.certificate.location, ssl.key.location"
            raise BadKafkaProperty(name, "it names a Java key store", hint=hint)
        elif name == "buffer.memory":
            made[_RENAMED[name]] = max(int(value) // 1024, 1)
        else:
            made[_RENAMED.get(name, name)] = value
    return made


def configured(kind: str, settings: Mapping[str, Any]) -> Any:
    """A `Consumer`, `Producer` or `AdminClient` of these settings."""
    module = admin_library() if kind == "AdminClient" else library()
    try:
        return getattr(module, kind)({"log_level": 2, **settings})
    except library().KafkaException as problem:
        error = problem.args[0]
        named = re.search(r'property[: ]+"?([\w.]+)"?', error.str())
        raise BadKafkaProperty(named[1] if named else "?", error.str()) from None


def failure(problem: BaseException, servers: str, doing: str) -> MillstreamError:
    """The error to raise for a `KafkaException`."""
    kafka = library()
    error = problem.args[0] if problem.args else None
    if not isinstance(error, kafka.KafkaError):
        return KafkaFailure(doing, str(problem))
    codes = kafka.KafkaError
    lost = {codes._TRANSPORT, codes._TIMED_OUT, codes._ALL_BROKERS_DOWN, codes._RESOLVE, codes._TIMED_OUT_QUEUE}
    if error.code() in lost or (error.retriable() and "timed out" in error.str().lower()):
        return BrokerUnreachable(servers, doing, error.str())
    fenced = error.code() in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH)
    return (Fenced if fenced else KafkaFailure)(doing, f"{error.name()}: {error.str()}")


def patiently(call: Callable[[], Result], servers: str, doing: str) -> Result:
    """The result of a call to the brokers; repeated while a coordinator or leader is being found."""
    kafka = library()
    codes = kafka.KafkaError
    passing = {
        codes.NOT_COORDINATOR,
        codes.COORDINATOR_NOT_AVAILABLE,
        codes.COORDINATOR_LOAD_IN_PROGRESS,
        codes._WAIT_COORD,
        codes.LEADER_NOT_AVAILABLE,
        codes.NOT_LEADER_FOR_PARTITION,
    }
    deadline = time.monotonic() + DEADLINE
    while True:
        try:
            return call()
        except kafka.KafkaException as problem:
            if problem.args[0].code() not in passing or time.monotonic() >= deadline:
                raise failure(problem, servers, doing) from problem
            time.sleep(0.1)
