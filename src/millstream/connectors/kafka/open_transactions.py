"""List and abort open transactions at the brokers.

Promises: listing changes nothing. Aborting fences the producer that uses the id; a job that still runs opens it again.
Does not know: jobs.

The client library can open transactions but not list them, so this speaks the three messages of Kafka's protocol that
are needed (KIP-664). Brokers must be reachable without a log-in, in plain text or by TLS; aborting works with any
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
    configured,
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
    """A transactional id as its coordinator sees it. Times are milliseconds; `started` is None when none is open."""

    id: str
    state: str
    producer: int
    epoch: int
    timeout: int
    started: int | None
    topics: tuple[str, ...]


def listed(
    servers: str, settings: Mapping[str, Any], prefix: str = "", *, everything: bool = False
) -> list[OpenTransaction]:
    """The transactions that are open, of ids that begin with a prefix; with `everything`, finished ones too."""
    protocol = str(settings.get("security.protocol", "plaintext")).lower()
    if protocol not in ("plaintext", "ssl"):
        raise CannotList(protocol)
    admin = configured("AdminClient", {**settings, "bootstrap.servers": servers})
    brokers = metadata(admin, servers, "looking for brokers").brokers.values()
    found: list[OpenTransaction] = []
    for broker in brokers:
        with _Connection(broker.host, broker.port, _tls(settings) if protocol == "ssl" else None) as connection:
            names = [name for name in connection.listed() if name.startswith(prefix)]
            found.extend(connection.described(names))
    return sorted((each for each in found if everything or each.started is not None), key=lambda each: each.id)


def abort(servers: str, settings: Mapping[str, Any], transactional_id: str) -> None:
    """Abort the open transaction of an id, by opening the id again; its messages are never visible to
    read_committed."""
    producer = configured("Producer", {**settings, "bootstrap.servers": servers, "transactional.id": transactional_id})
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


class _Answer:
    """Decodes Kafka's compact encoding."""

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

    def array(self, each: Callable[[], Any]) -> list[Any]:
        return [each() for _ in range(self.varint() - 1)]

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

    def _ask(self, kind: int, body: bytes) -> _Answer:
        client = b"millstream"
        head = struct.pack(">hhih", kind, 0, 1, len(client)) + client + b"\0"
        try:
            self._socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
            answer = _Answer(self._exactly(struct.unpack(">i", self._exactly(4))[0]))
        except OSError as error:
            raise BrokerUnreachable(self._name, "listing transactions", str(error)) from error
        answer.number("i")
        answer.tags()
        answer.number("i")  # throttled for so long
        return answer

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                msg = "the connection was closed"
                raise OSError(msg)
            data += more
        return data

    def listed(self) -> list[str]:
        """The ids this broker coordinates."""
        answer = self._ask(_LIST, b"\x01\x01\0")
        code = answer.number("h")
        if code:
            raise KafkaFailure(doing="listing transactions", reason=f"{self._name} answered with error {code}")
        answer.array(answer.text)

        def one() -> str:
            name = answer.text()
            answer.number("q")
            answer.text()
            answer.tags()
            return name

        return answer.array(one)

    def described(self, names: list[str]) -> list[OpenTransaction]:
        """What the broker knows about ids it coordinates."""
        encoded = b"".join(_varint(len(name.encode()) + 1) + name.encode() for name in names)
        answer = self._ask(_DESCRIBE, _varint(len(names) + 1) + encoded + b"\0")
        return [each for each in answer.array(lambda: _described(answer)) if each is not None]


def _described(answer: _Answer) -> OpenTransaction | None:
    code, name, state = answer.number("h"), answer.text(), answer.text()
    timeout, started, producer, epoch = answer.number("i"), answer.number("q"), answer.number("q"), answer.number("h")

    def topic() -> str:
        told = answer.text()
        answer.array(lambda: answer.number("i"))
        answer.tags()
        return told

    topics = answer.array(topic)
    answer.tags()
    if code:
        return None
    open_ = state in ("Ongoing", "PrepareCommit", "PrepareAbort") and started >= 0
    return OpenTransaction(name, state, producer, epoch, timeout, started if open_ else None, tuple(sorted(topics)))


def _varint(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
