"""Builders of the Elasticsearch sink.

Promises: PyFlink's builders. Hosts and an emitter are needed.
Does not know: how documents are written."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Self

from millstream.connector.http_client import Backoff, HttpOptions, check_url, encode_basic
from millstream.connectors.elasticsearch.bulk import ActionFormat, BulkServer
from millstream.connectors.elasticsearch.documents import DictActions, ElasticsearchEmitter
from millstream.connectors.elasticsearch.sink import ElasticsearchSink
from millstream.errors import UserError

_MEGABYTE = 1024 * 1024
_CONTENT_TYPE = ("Content-Type", "application/x-ndjson")
_LONGEST_DELAY = 3600.0


class IncompleteElasticsearchSink(UserError):
    """A builder with a missing or wrong setting."""


class FlushBackoffType(Enum):
    """How the sink waits before it sends rejected actions again.

    Example:
        >>> from millstream.datastream.connectors.elasticsearch import Elasticsearch7SinkBuilder
        >>> builder = Elasticsearch7SinkBuilder()
        >>> builder = builder.set_bulk_flush_backoff_strategy(FlushBackoffType.EXPONENTIAL, 5, 1000)

    """

    CONSTANT = 0
    EXPONENTIAL = 1
    NONE = 2


def create_backoff(backoff_type: FlushBackoffType, retries: int, delay_millis: int) -> Backoff:
    """Return how often, and after which delays, requests are repeated."""
    if backoff_type is FlushBackoffType.NONE:
        return Backoff(retries=0)
    factor = 2.0 if backoff_type is FlushBackoffType.EXPONENTIAL else 1.0
    return Backoff(retries, delay_millis / 1000, factor, _LONGEST_DELAY)


def create_http_options(username: str | None, password: str | None) -> HttpOptions:
    """Return how requests of bulk actions are sent."""
    headers = [_CONTENT_TYPE]
    if username:
        headers.append(("Authorization", encode_basic(username, password or "")))
    return HttpOptions(tuple(headers), backoff=Backoff(retries=0))


def complete_host(host: str) -> str:
    """Return the URL of a host; raise if there is none."""
    url = host.strip() if "://" in host else f"http://{host.strip()}"
    check_url(url)
    return url


class ElasticsearchSinkBuilderBase:
    """What the builders of all versions have.

    Example:
        >>> issubclass(Elasticsearch7SinkBuilder, ElasticsearchSinkBuilderBase)
        True

    """

    def __init__(self) -> None:
        self._hosts: tuple[str, ...] = ()
        self._emitter: ElasticsearchEmitter | None = None
        self._max_actions: int | None = 1000
        self._max_bytes: int | None = None
        self._backoff = Backoff(retries=0)
        self._username: str | None = None
        self._password: str | None = None
        self._path_prefix = ""
        self._connection_timeout: float | None = None
        self._socket_timeout = HttpOptions.timeout

    def set_emitter(self, emitter: ElasticsearchEmitter) -> Self:
        """Set which index and document a record is written to.

        Args:
            emitter: The emitter.

        """
        self._emitter = emitter
        return self

    def set_hosts(self, hosts: str | list[str]) -> Self:
        """Set the nodes of the cluster.

        Args:
            hosts: The addresses, such as `localhost:9200` or `https://search.example.com`.

        """
        self._hosts = tuple(complete_host(host) for host in ([hosts] if isinstance(hosts, str) else hosts))
        return self

    def set_delivery_guarantee(self, delivery_guarantee: Enum) -> Self:
        """Set the delivery guarantee. All actions are carried out before a checkpoint, with NONE also.

        Args:
            delivery_guarantee: A member of `DeliveryGuarantee`, not EXACTLY_ONCE.

        """
        if delivery_guarantee.name == "EXACTLY_ONCE":
            message = "the Elasticsearch sink does not support EXACTLY_ONCE"
            hint = "use AT_LEAST_ONCE, with a key field: then an action that is repeated changes nothing"
            raise IncompleteElasticsearchSink(message, hint=hint)
        return self

    def set_bulk_flush_max_actions(self, num_max_actions: int) -> Self:
        """Set how many actions a request has at most; the default is 1000.

        Args:
            num_max_actions: The number; -1 is no limit.

        """
        self._max_actions = num_max_actions if num_max_actions > 0 else None
        return self

    def set_bulk_flush_max_size_mb(self, max_size_mb: int) -> Self:
        """Set the largest size of a request; by default there is no limit.

        Args:
            max_size_mb: The size in MB; -1 is no limit.

        """
        self._max_bytes = max_size_mb * _MEGABYTE if max_size_mb > 0 else None
        return self

    def set_bulk_flush_interval(self, interval_millis: int) -> Self:
        """Accept the longest time that actions are buffered. It has no effect: the end of each epoch sends them.

        Args:
            interval_millis: The time in milliseconds.

        """
        return self

    def set_bulk_flush_backoff_strategy(
        self, flush_backoff_type: FlushBackoffType, max_retries: int, delay_millis: int
    ) -> Self:
        """Set how often requests are repeated that the server rejects because it is busy, or does not answer; by
        default they fail the job.

        Args:
            flush_backoff_type: Whether the delay between attempts grows.
            max_retries: How often a request is repeated.
            delay_millis: The first delay in milliseconds.

        """
        self._backoff = create_backoff(flush_backoff_type, max_retries, delay_millis)
        return self

    def set_connection_username(self, username: str) -> Self:
        """Set the user name.

        Args:
            username: The user name.

        """
        self._username = username
        return self

    def set_connection_password(self, password: str) -> Self:
        """Set the password.

        Args:
            password: The password.

        """
        self._password = password
        return self

    def set_connection_path_prefix(self, prefix: str) -> Self:
        """Set the path under which the server is reached, for example behind a proxy.

        Args:
            prefix: The path, such as `/search`.

        """
        self._path_prefix = prefix
        return self

    def set_connection_request_timeout(self, timeout: int) -> Self:
        """Accept how long to wait for a connection of a pool. It has no effect: each subtask has its own connection.

        Args:
            timeout: The time in milliseconds.

        """
        return self

    def set_connection_timeout(self, timeout: int) -> Self:
        """Set how long to wait for a connection.

        Args:
            timeout: The time in milliseconds.

        """
        self._connection_timeout = timeout / 1000
        return self

    def set_socket_timeout(self, timeout: int) -> Self:
        """Set how long to wait for an answer; the default is 30 seconds.

        Args:
            timeout: The time in milliseconds.

        """
        self._socket_timeout = timeout / 1000
        return self

    def build(self) -> ElasticsearchSink:
        """Build the sink."""
        if not self._hosts or self._emitter is None:
            setting, call = ("hosts", "set_hosts") if not self._hosts else ("emitter", "set_emitter")
            message = f"the Elasticsearch sink has no {setting}"
            raise IncompleteElasticsearchSink(message, hint=f"call {call}(...) on the builder")
        options = replace(
            create_http_options(self._username, self._password),
            timeout=self._socket_timeout,
            connect_timeout=self._connection_timeout,
        )
        server = BulkServer(self._hosts, options, self._backoff, self._path_prefix)
        actions = DictActions(self._emitter, self._create_action_format(self._emitter))
        return ElasticsearchSink(server, actions, self._max_actions, self._max_bytes)

    def _create_action_format(self, emitter: ElasticsearchEmitter) -> ActionFormat:
        return ActionFormat()


class Elasticsearch6SinkBuilder(ElasticsearchSinkBuilderBase):
    """Builds a sink for Elasticsearch 6, whose documents have a type.

    Example:
        >>> emitter = ElasticsearchEmitter.static_index("users", "id", doc_type="user")
        >>> sink = Elasticsearch6SinkBuilder().set_hosts("localhost:9200").set_emitter(emitter).build()

    """

    def _create_action_format(self, emitter: ElasticsearchEmitter) -> ActionFormat:
        if emitter.doc_type is None:
            message = "documents of Elasticsearch 6 need a type"
            raise IncompleteElasticsearchSink(message, hint="set doc_type of the emitter")
        return ActionFormat(emitter.doc_type)


class Elasticsearch7SinkBuilder(ElasticsearchSinkBuilderBase):
    """Builds a sink for Elasticsearch 7 and 8, and for OpenSearch. It ignores the type of documents.

    Example:
        >>> emitter = ElasticsearchEmitter.dynamic_index("table", "id")
        >>> sink = Elasticsearch7SinkBuilder().set_hosts(["es1:9200", "es2:9200"]).set_emitter(emitter).build()

    """
