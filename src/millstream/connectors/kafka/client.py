"""The Kafka client library: import, configuration, and its failures as millstream errors.

Promises: a property that the library does not know is refused by name; every failure of the library is raised as an
error that names the action, and the reason if the brokers refused a log-in.
Does not know: topics, offsets, records."""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from millstream.connectors.kafka.properties import BadKafkaProperty
from millstream.errors import ExternalError, MillstreamError, UserError

Result = TypeVar("Result")

DEADLINE = 30.0  # seconds for one request to the brokers
_FIRST_TURN = 1.0  # seconds of it until the client is asked whether it was refused; then twice as long, and so on
_refusals: dict[str, str] = {}  # by servers: why a client was not let in


class KafkaLibraryMissing(UserError):
    """The client library is not installed."""

    hint = "pip install 'millstream[kafka]', or confluent-kafka itself, on the driver and all executors"

    def __init__(self) -> None:
        super().__init__("the Kafka connector needs the library confluent-kafka")


class BrokerUnreachable(ExternalError):
    """No broker answered."""

    def __init__(self, servers: str, doing: str, reason: str) -> None:
        self.servers = servers
        super().__init__(
            f"no Kafka broker at {servers} answered while {doing}: {reason}",
            hint="are the brokers up, and are the bootstrap servers and the listeners' names right from here?",
        )


class NotAdmitted(ExternalError):
    """The brokers refused the log-in, or the TLS handshake failed."""

    hint = "check security.protocol, sasl.mechanism, user and password, and the certificates (ssl.ca.location)"

    def __init__(self, servers: str, doing: str, reason: str) -> None:
        self.servers = servers
        super().__init__(f"the Kafka brokers at {servers} refused the log-in while {doing}: {reason}")


class KafkaFailure(ExternalError):
    """The brokers answered with an error."""

    def __init__(self, doing: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{doing} failed: {reason}", hint=hint)


class Fenced(KafkaFailure):
    """Another producer has fenced the transactional id, or the brokers have aborted the transaction."""


def library() -> Any:
    """Import confluent_kafka."""
    return _module("confluent_kafka")


def admin_library() -> Any:
    """Import confluent_kafka.admin."""
    return _module("confluent_kafka.admin")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.split(".")[0] == "confluent_kafka":
            raise KafkaLibraryMissing from None
        raise


def configured(kind: str, settings: Mapping[str, Any]) -> Any:
    """A `Consumer`, `Producer` or `AdminClient` of these settings."""
    module = admin_library() if kind == "AdminClient" else library()
    servers, codes = str(settings.get("bootstrap.servers")), library().KafkaError

    def heard(error: Any) -> None:
        if error.code() in (codes._AUTHENTICATION, codes._SSL):
            _refusals[servers] = error.str()

    _refusals.pop(servers, None)
    try:
        return getattr(module, kind)({"log_level": 2, "error_cb": heard, **settings})
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
        if servers in _refusals:
            return NotAdmitted(servers, doing, _refusals[servers])
        return BrokerUnreachable(servers, doing, error.str())
    fenced = error.code() in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH)
    return (Fenced if fenced else KafkaFailure)(doing, f"{error.name()}: {error.str()}")


def metadata(client: Any, servers: str, doing: str, topic: str | None = None, timeout: float = DEADLINE) -> Any:
    """Request the metadata of the cluster, or of one topic."""
    deadline, turn = time.monotonic() + timeout, _FIRST_TURN
    while True:
        left = deadline - time.monotonic()
        try:
            return client.list_topics(topic, timeout=max(min(left, turn), 0.1))
        except library().KafkaException as problem:
            client.poll(0)  # it tells what it has heard
            if left <= turn or servers in _refusals:
                raise failure(problem, servers, doing) from problem
        turn *= 2


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
