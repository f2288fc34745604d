"""Text from a socket, as records between delimiters.

Promises: as in Flink, the end of the connection ends the stream unless retries are left; text after the last delimiter
is a record too; with lines, a carriage return before the line feed is dropped.
Does not know: logs, jobs."""

from __future__ import annotations

import contextlib
import socket
import time

from millstream.connectors.receiver.contract import Emit, Receiver
from millstream.errors import ExternalError, UserError

_CONNECT_SECONDS = 10.0
_POLL_SECONDS = 1.0  # seconds between two checks whether an idle receiver was stopped
_RETRY_SECONDS = 0.5
_MAX_RECORD_BYTES = 16 << 20


class CannotConnect(ExternalError):
    """The server cannot be reached."""

    def __init__(self, host: str, port: int, problem: OSError) -> None:
        super().__init__(f"cannot connect to {host}:{port}: {problem}", hint="start the server, or raise max_retry")


class RecordTooLong(ExternalError):
    """A record is longer than the limit, without a delimiter."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"there is no delimiter in {size} bytes of text", hint="set the delimiter that the sender uses"
        )


class SocketTextReceiver(Receiver):
    """Connects to a server and emits its text. `max_retry` is how often it connects again, -1 for ever.

    Example:
        >>> SocketTextReceiver("localhost", 9999, max_retry=3)
        SocketTextReceiver(localhost:9999)

    """

    def __init__(self, host: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> None:
        if not isinstance(port, int) or not 0 < port < 65536:
            msg = f"{port!r} is not a port"
            raise UserError(msg, hint="use a number from 1 to 65535")
        if not delimiter:
            msg = "the delimiter is empty"
            raise UserError(msg, hint="use at least one character")
        if max_retry < -1:
            msg = f"max_retry is {max_retry}"
            raise UserError(msg, hint="use -1 to retry for ever, 0 for no retry, or a number of retries")
        self._host, self._port, self._max_retry = host, port, max_retry
        self._delimiter = delimiter.encode()
        self._is_stopped = False
        self._connection: socket.socket | None = None

    def __repr__(self) -> str:
        return f"SocketTextReceiver({self._host}:{self._port})"

    def run(self, emit: Emit) -> None:
        """Emit text until the server closes the connection and no retries are left."""
        rest, tries = b"", 0
        while not self._is_stopped:
            tries += 1
            has_retries = self._max_retry == -1 or tries <= self._max_retry
            try:
                connection = socket.create_connection((self._host, self._port), _CONNECT_SECONDS)
            except OSError as problem:
                if not has_retries:
                    raise CannotConnect(self._host, self._port, problem) from problem
            else:
                with connection:
                    self._connection = connection
                    rest = self._receive(connection, rest, emit)
            if not has_retries:
                break
            time.sleep(_RETRY_SECONDS)
        if rest and not self._is_stopped:
            emit(self._text(rest))

    def _receive(self, connection: socket.socket, rest: bytes, emit: Emit) -> bytes:
        """Emit records until the connection ends; return the text after the last delimiter."""
        connection.settimeout(_POLL_SECONDS)
        while not self._is_stopped:
            try:
                data = connection.recv(65536)
            except TimeoutError:
                continue
            except OSError:
                return rest  # a reset by the server counts as the end of the connection
            if not data:
                return rest
            *whole, rest = (rest + data).split(self._delimiter)
            for record in whole:
                emit(self._text(record))
            if len(rest) > _MAX_RECORD_BYTES:
                raise RecordTooLong(len(rest))
        return rest

    def _text(self, record: bytes) -> str:
        text = record.decode("utf-8", errors="replace")
        return text.removesuffix("\r") if self._delimiter == b"\n" else text

    def stop(self) -> None:
        """Close the connection."""
        self._is_stopped = True
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
