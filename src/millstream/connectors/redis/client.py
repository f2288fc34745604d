"""Connections to a Redis server.

Promises: the package redis is imported when it is needed. A command that fails because the connection broke is sent
again.
Does not know: which commands are sent."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import ExternalError, UserError

Command = tuple[Any, ...]  # the name of a command and its arguments


class MissingRedis(UserError):
    """The package redis is not installed."""

    hint = "pip install 'millstream[redis]'"

    def __init__(self, problem: ImportError) -> None:
        super().__init__(f"Redis needs the package redis, which cannot be imported: {problem}")


@dataclass(frozen=True)
class RedisServer:
    """Where the server is. `timeout` is in milliseconds."""

    host: str
    port: int = 6379
    database: int = 0
    password: str | None = field(default=None, repr=False)
    timeout: int = 2000
    retries: int = 1


class RedisFailure(ExternalError):
    """The server cannot be reached, or refused a command."""

    def __init__(self, server: RedisServer, action: str, problem: Exception) -> None:
        super().__init__(f"cannot {action} the Redis server {server.host}:{server.port}: {problem}")


def import_redis(module: str = "redis") -> Any:
    """Import the package redis, or a module of it."""
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise MissingRedis(problem) from problem


class RedisClient:
    """A client of a server; it can be called from several threads."""

    def __init__(self, server: RedisServer) -> None:
        self._package = import_redis()
        retry, backoff = import_redis("redis.retry"), import_redis("redis.backoff")
        self._server = server
        seconds = server.timeout / 1000
        self._client = self._package.Redis(
            server.host,
            server.port,
            server.database,
            server.password,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            retry=retry.Retry(backoff.NoBackoff(), 0),  # this client counts retries itself
        )

    def send(self, commands: Sequence[Command], action: str) -> list[Any]:
        """Send commands in one pipeline, which is not a transaction; return their results."""

        def send_all() -> list[Any]:
            with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                return list(pipeline.execute())

        return self._retry(send_all, action)

    def _retry(self, work: Callable[[], list[Any]], action: str) -> list[Any]:
        attempt = 0
        while True:
            try:
                return work()
            except (self._package.ConnectionError, self._package.TimeoutError) as problem:
                if attempt >= self._server.retries:
                    raise RedisFailure(self._server, action, problem) from None
                attempt += 1
            except self._package.RedisError as problem:
                raise RedisFailure(self._server, action, problem) from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
