"""Answers to requests that start an operation, and to those that poll for its result.

Promises: Flink's fields; an operation that fails is an answer with status 500 and the reason.
Does not know: what the operations do; `triggers` keeps them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from fastapi.responses import JSONResponse
from typing_extensions import TypedDict

#: What the OpenAPI document says of requests that poll for the result of an operation.
FAILED_OPERATION: dict[int | str, dict[str, Any]] = {500: {"description": "It has failed; `errors` has the reason."}}

TriggerAnswer = TypedDict("TriggerAnswer", {"request-id": str})


class OperationAnswer(TypedDict):
    """The status of an operation, and its result when it has finished."""

    status: dict[str, str]
    operation: dict[str, Any] | None


def answer_operation(
    operation: Future[Any], describe: Callable[[Any], dict[str, Any]]
) -> OperationAnswer | JSONResponse:
    """Return the status of an operation, and its result when it has finished."""
    if not operation.done():
        return {"status": {"id": "IN_PROGRESS"}, "operation": None}
    if operation.cancelled():
        return JSONResponse({"errors": ["a later request replaced it, or the job has ended"]}, status_code=500)
    problem = operation.exception()
    if problem is not None:  # Flink's clients print these texts; its own answer has a Java exception instead
        return JSONResponse({"errors": [str(problem)]}, status_code=500)
    return {"status": {"id": "COMPLETED"}, "operation": describe(operation.result())}
