"""Connections that break before or after a statement of a test's choice."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg


class Faults:
    """Counts operations on all connections; the one that is armed breaks its connection."""

    def __init__(self) -> None:
        self.count = 0
        self.at = -1
        self.rate = 0.0
        self.chance = random.Random(0)
        self.after = False
        self.broken: str | None = None
        self.breaks = 0

    def arm(self, at: int, *, after: bool) -> None:
        """Break at one operation."""
        self.count, self.at, self.after, self.broken = 0, at, after, None

    def arm_often(self, seed: int, rate: float) -> None:
        """Break now and then, before or after."""
        self.chance, self.rate = random.Random(seed), rate

    def disarm(self) -> None:
        self.at, self.rate = -1, 0.0

    @contextmanager
    def point(self, connection: Any, what: str) -> Iterator[None]:
        number, self.count = self.count, self.count + 1
        breaks = number == self.at
        if self.rate and self.chance.random() < self.rate:
            breaks, self.after = True, self.chance.random() < 0.5
        if breaks and not self.after:
            self._break(connection, what)
        yield
        if breaks and self.after:
            self._break(connection, what)

    def _break(self, connection: Any, what: str) -> None:
        self.broken = what
        self.breaks += 1
        connection.close()
        msg = f"broken {'after' if self.after else 'before'} {what}"
        raise psycopg.OperationalError(msg)


class FaultyConnection:
    """A connection of which every statement is a point."""

    def __init__(self, real: Any, faults: Faults) -> None:
        self._real, self._faults = real, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: Any, *arguments: Any) -> Any:
        with self._faults.point(self._real, str(statement)):
            return self._real.execute(statement, *arguments)

    def cursor(self, **how: Any) -> Any:
        return FaultyCursor(self._real.cursor(**how), self._real, self._faults)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._faults.point(self._real, "BEGIN"):
            pass
        inside = self._real.transaction()
        with self._faults.point(self._real, "COMMIT"), inside:
            yield


class FaultyCursor:
    def __init__(self, real: Any, connection: Any, faults: Faults) -> None:
        self._real, self._connection, self._faults = real, connection, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __enter__(self) -> FaultyCursor:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._real.close()

    def execute(self, statement: Any, *arguments: Any) -> Any:
        with self._faults.point(self._connection, str(statement)):
            return self._real.execute(statement, *arguments)

    def executemany(self, statement: Any, *arguments: Any) -> Any:
        with self._faults.point(self._connection, str(statement)):
            return self._real.executemany(statement, *arguments)

    @contextmanager
    def copy(self, statement: Any, *arguments: Any) -> Iterator[Any]:
        with self._faults.point(self._connection, str(statement)), self._real.copy(statement, *arguments) as copy:
            yield copy

    def stream(self, statement: Any, *arguments: Any, **how: Any) -> Iterator[Any]:
        with self._faults.point(self._connection, str(statement)):
            yield from self._real.stream(statement, *arguments, **how)
