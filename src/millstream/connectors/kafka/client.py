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
_FIRST_WAIT = 1.0  # seconds until the first check whether the log-in was refused; doubled after each check
_refusals: dict[str, str] = {}  # why a log-in was refused, by bootstrap servers


class KafkaLibraryMissing(UserError):
    """The client library is not installed."""

    hint = "pip install 'millstream[kafka]', or confluent-kafka itself, on the driver and all executors"

    def __init__(self) -> None:
        super().__init__("the Kafka connector needs the library confluent-kafka")


class BrokerUnreachable(ExternalError):
    """No broker answered."""

    def __init__(self, servers: str, action: str, reason: str) -> None:
        self.servers = servers
        super().__init__(
            f"no Kafka broker at {servers} answered while {action}: {reason}",
            hint="check that the brokers run, and that the bootstrap servers and listeners can be reached from here",
        )


class LoginRefused(ExternalError):
    """The brokers refused the log-in, or the TLS handshake failed."""

    hint = "check security.protocol, sasl.mechanism, user and password, and the certificates (ssl.ca.location)"

    def __init__(self, servers: str, action: str, reason: str) -> None:
        self.servers = servers
        super().__init__(f"the Kafka brokers at {servers} refused the log-in while {action}: {reason}")


class KafkaFailure(ExternalError):
    """The brokers answered with an error."""

    def __init__(self, action: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"{action} failed: {reason}", hint=hint)


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


def create_client(client_type: str, settings: Mapping[str, Any]) -> Any:
    """Create a `Consumer`, `Producer` or `AdminClient` with these settings."""
    module = admin_library() if client_type == "AdminClient" else library()
    servers, codes = str(settings.get("bootstrap.servers")), library().KafkaError

    def on_error(error: Any) -> None:
        if error.code() in (codes._AUTHENTICATION, codes._SSL):
            _refusals[servers] = error.str()

    _refusals.pop(servers, None)
    try:
        return getattr(module, client_type)({"log_level": 2, "error_cb": on_error, **settings})
    except library().KafkaException as problem:
        error = problem.args[0]
        property_match = re.search(r'property[: ]+"?([\w.]+)"?', error.str())
        raise BadKafkaProperty(property_match[1] if property_match else "?", error.str()) from None


def failure(problem: BaseException, servers: str, action: str) -> MillstreamError:
    """Return the error to raise for a `KafkaException`."""
    kafka = library()
    error = problem.args[0] if problem.args else None
    if not isinstance(error, kafka.KafkaError):
        return KafkaFailure(action, str(problem))
    codes = kafka.KafkaError
    unreachable_codes = {
        codes._TRANSPORT,
        codes._TIMED_OUT,
        codes._ALL_BROKERS_DOWN,
        codes._RESOLVE,
        codes._TIMED_OUT_QUEUE,
    }
    if error.code() in unreachable_codes or (error.retriable() and "timed out" in error.str().lower()):
        if servers in _refusals:
            return LoginRefused(servers, action, _refusals[servers])
        return BrokerUnreachable(servers, action, error.str())
    is_fenced = error.code() in (codes._FENCED, codes.PRODUCER_FENCED, codes.INVALID_PRODUCER_EPOCH)
    return (Fenced if is_fenced else KafkaFailure)(action, f"{error.name()}: {error.str()}")


def metadata(client: Any, servers: str, action: str, topic: str | None = None, timeout: float = DEADLINE) -> Any:
    """Request the metadata of the cluster, or of one topic."""
    deadline, wait = time.monotonic() + timeout, _FIRST_WAIT
    while True:
        remaining = deadline - time.monotonic()
        try:
            return client.list_topics(topic, timeout=max(min(remaining, wait), 0.1))
        except library().KafkaException as problem:
            client.poll(0)  # calls the error callback
            if remaining <= wait or servers in _refusals:
                raise failure(problem, servers, action) from problem
        wait *= 2


def retry_while_unavailable(call: Callable[[], Result], servers: str, action: str) -> Result:
    """Return the result of a call to the brokers; it is repeated while a coordinator or leader is being elected."""
    kafka = library()
    codes = kafka.KafkaError
    transient_codes = {
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
            if problem.args[0].code() not in transient_codes or time.monotonic() >= deadline:
                raise failure(problem, servers, action) from problem
            time.sleep(0.1)
