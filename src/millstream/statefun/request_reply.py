"""The handler that serves functions in StateFun. Here, functions run in the job."""

from __future__ import annotations

from typing import Any

from millstream.errors import UserError


class RequestReplyHandler:
    """StateFun's handler of HTTP requests. It cannot be created, because functions are not served here.

    Args:
        functions: The functions.

    Example:
        >>> RequestReplyHandler(None)
        Traceback (most recent call last):
        ...
        millstream.errors.UserError: functions are not served by a RequestReplyHandler: ...

    """

    def __init__(self, functions: Any) -> None:
        msg = "functions are not served by a RequestReplyHandler: they run in the tasks of the job"
        raise UserError(
            msg, hint="remove the HTTP server, and pass them to StatefulFunctionDataStreamBuilder.with_functions"
        )
