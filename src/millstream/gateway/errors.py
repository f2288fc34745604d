"""Errors of the gateway, and their form for Flink's clients.

Promises: an error of a statement is a text that Flink's SQL client and JDBC driver show without a stack trace. They
show the text after the last `Caused by: `, up to the first line that begins with a tab and `at`.
Does not know: HTTP."""

from __future__ import annotations

from typing import Any

from millstream.errors import UserError
from millstream.sql.errors import SqlError, SqlSyntaxError

#: What the OpenAPI document says of operations that execute something for a client.
ERROR_ANSWER: dict[int | str, dict[str, Any]] = {
    500: {"description": "It failed, or cannot be done; `errors` has the reason in the form of Flink's gateway."}
}

_END = "\n\tat millstream.gateway\n"


class NoSuchSession(UserError):
    """There is no session of this handle."""

    def __init__(self, handle: str) -> None:
        super().__init__(
            f"there is no session {handle}", hint="it was closed, or it expired: see sql-gateway.session.idle-timeout"
        )


class NoSuchOperation(UserError):
    """The session has no operation of this handle."""

    def __init__(self, handle: str) -> None:
        super().__init__(f"the session has no operation {handle}")


class TooManySessions(UserError):
    """No more sessions can be opened."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} sessions are open", hint="close some, or raise sql-gateway.session.max-num")


class TooManyOperations(UserError):
    """A session has too many open operations."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the session has {limit} open operations", hint="close operations whose result was read")


class WrongToken(UserError):
    """The requested page of a result is no longer kept, or does not exist yet."""

    def __init__(self, token: int, current: int) -> None:
        super().__init__(
            f"page {token} of the result cannot be read; the next one is {current}",
            hint="pages are read one after the other, and only the last one can be read again",
        )


class NotFetchable(UserError):
    """The operation was cancelled, closed or timed out, so that it has no result."""

    def __init__(self, status: str) -> None:
        super().__init__(f"the operation has no result: its status is {status}")


class OptionOfServer(UserError):
    """A client sets an option that belongs to the gateway's process."""

    def __init__(self, key: str) -> None:
        super().__init__(f"option '{key}' cannot be set in a session", hint="set it when the gateway is started")


def describe(problem: Exception, operation: str | None = None) -> str:
    """Return an error as Flink's clients read it."""
    name = "org.apache.flink.table.api.TableException"
    if isinstance(problem, SqlSyntaxError):
        name = "org.apache.flink.table.api.SqlParserException"
    elif isinstance(problem, SqlError):
        name = "org.apache.flink.table.api.ValidationException"
    subject = "Failed to execute the request." if operation is None else f"Failed to execute operation {operation}."
    text = str(problem) or type(problem).__name__
    outer = f"org.apache.flink.table.gateway.service.utils.SqlExecutionException: {subject}{_END}"
    return f"<Exception on server side:\n{outer}Caused by: {name}: {text}{_END}End of exception on server side>"
