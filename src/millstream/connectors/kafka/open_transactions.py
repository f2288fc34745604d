"""List and abort open transactions at the brokers.

Promises: listing changes nothing. Aborting fences the producer that uses the id; a job that still runs opens it again.
Does not know: jobs.

The client library can open transactions but not list them, so this module implements the messages of Kafka's protocol
that are needed (KIP-664). Brokers must be reachable without a log-in, in plain text or by TLS; aborting works with any
settings."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from millstream.connectors.kafka.client import (
    DEADLINE,
    BrokerUnreachable,
    KafkaFailure,
    create_client,
    failure,
    library,
    metadata,
)
from millstream.errors import UserError

_LIST, _DESCRIBE = 66, 65


class CannotList(UserError):
    """The brokers require a log-in that listing does not support."""

    def __init__(self, protocol: str) -> None:
        super().__init__(
            f"transactions cannot be listed with security.protocol={protocol}",
            hint="use kafka-transactions.sh, or abort by id: `millstream txn abort` works with any settings",
        )


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transactional id, as its coordinator reports it. Times are milliseconds; `started` is None if no transaction is
    open."""

    id: str
    state: str
    producer: int
    epoch: int
    timeout: int
    started: int | None
    topics: tuple[str, ...]


def list_transactions(
    servers: str, settings: Mapping[str, Any], prefix: str = "", *, everything: bool = False
) -> list[OpenTransaction]:
    """Return the open transactions of ids that begin with a prefix; with `everything`, finished ones, too."""
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol not in ("plaintext", "ssl"):
        raise CannotList(protocol)
    admin = create_client("AdminClient", {**settings, "bootstrap.servers": servers})
    brokers = metadata(admin, servers, "requesting brokers").brokers.values()
    transactions: list[OpenTransaction] = []
    for broker in brokers:
        with _Connection(broker.host, broker.port, _tls(settings) if protocol == "ssl" else None) as connection:
            names = [name for name in connection.list_ids() if name.startswith(prefix)]
            transactions.extend(connection.describe(names))
    return sorted(
        (transaction for transaction in transactions if everything or transaction.started is not None),
        key=lambda transaction: transaction.id,
    )


def abort(servers: str, settings: Mapping[str, Any], transactional_id: str) -> None:
    """Abort the open transaction of an id, by opening the id again; its messages are never visible to
    read_committed."""
    producer = create_client(
        "Producer", {**settings, "bootstrap.servers": servers, "transactional.id": transactional_id}
    )
    try:
        producer.init_transactions(DEADLINE)
    except library().KafkaException as problem:
        raise failure(problem, servers, f"aborting '{transactional_id}'") from problem


def _tls(settings: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"))
    if "ssl.certificate.location" in settings:
        context.load_cert_chain(
            settings["ssl.certificate.location"], settings.get("ssl.key.location"), settings.get("ssl.key.password")
        )
    return context


class _Response:
    """A response in Kafka's compact encoding, and the offset of the next value."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self, form: str) -> int:
        value: int = struct.unpack_from(f">{form}", self._data, self._at)[0]
        self._at += struct.calcsize(f">{form}")
        return value

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def text(self) -> str:
        size = self.varint() - 1
        start, self._at = self._at, self._at + size
        return self._data[start : self._at].decode()

    def array(self, read_element: Callable[[], Any]) -> list[Any]:
        return [read_element() for _ in range(self.varint() - 1)]

    def tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self._at += self.varint()


class _Connection:
    """A connection to one broker."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._name = f"{host}:{port}"
        try:
            plain = socket.create_connection((host, port), timeout=DEADLINE)
            self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname=host)
        except OSError as error:
            raise BrokerUnreachable(self._name, "listing transactions", str(error)) from error

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _request(self, api_key: int, body: bytes) -> _Response:
        client = b"millstream"
        head = struct.pack(">hhih", api_key, 0, 1, len(client)) + client + b"\0"
        try:
            self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
            response = _Response(self._receive(struct.unpack(">i", self._receive(4))[0]))
        except OSError as error:
            raise BrokerUnreachable(self._name, "listing transactions", str(error)) from error
        response.number("i")
        response.tags()
        response.number("i")  # throttle time
        return response

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                msg = "the connection was closed"
                raise OSError(msg)
            data += more
        return data

    def list_ids(self) -> list[str]:
        """Return the ids that this broker coordinates."""
        response = self._request(_LIST, b"\x01\x01\0")
        code = response.number("h")
        if code:
            raise KafkaFailure(action="listing transactions", reason=f"{self._name} returned error {code}")
        response.array(response.text)

        def read_id() -> str:
            name = response.text()
            response.number("q")
            response.text()
            response.tags()
            return name

        return response.array(read_id)

    def describe(self, names: list[str]) -> list[OpenTransaction]:
        """Return the transactions of ids that this broker coordinates."""
        encoded = b"".join(_varint(len(name.encode()) + 1) + name.encode() for name in names)
        response = self._request(_DESCRIBE, _varint(len(names) + 1) + encoded + b"\0")
        return [
            transaction
            for transaction in response.array(lambda: _read_transaction(response))
            if transaction is not None
        ]


def _read_transaction(response: _Response) -> OpenTransaction | None:
    code, name, state = response.number("h"), response.text(), response.text()
    timeout, started, producer, epoch = (
        response.number("i"),
        response.number("q"),
        response.number("q"),
        response.number("h"),
    )

    def topic() -> str:
        topic_name = response.text()
        response.array(lambda: response.number("i"))
        response.tags()
        return topic_name

    topics = response.array(topic)
    response.tags()
    if code:
        return None
    is_open = state in ("Ongoing", "PrepareCommit", "PrepareAbort") and started >= 0
    return OpenTransaction(name, state, producer, epoch, timeout, started if is_open else None, tuple(sorted(topics)))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
