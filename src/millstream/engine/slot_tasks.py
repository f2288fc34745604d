"""The outcome of slot tasks as bytes, which travel from the workers to the driver.

Promises: every task has one outcome, a result or a failure; a failure keeps its domain, its text and its hint.
Does not know: where tasks run."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable
from typing import Any

from millstream.connector.slot_task import SlotTask
from millstream.errors import ExternalError, InternalError, MillstreamError, UserError

_DOMAINS: dict[str, type[MillstreamError]] = {"user": UserError, "external": ExternalError}


def run_task(index: int, task: SlotTask) -> bytes:
    """Run a task; gives its outcome, with its index among the tasks."""
    try:
        outcome = {"result": task.run()}
    except MillstreamError as problem:
        outcome = {"failure": [_domain(problem), problem.message, problem.hint]}
    except Exception:
        outcome = {"failure": ["internal", traceback.format_exc(), None]}
    return json.dumps([index, outcome]).encode()


def collect_results(outcomes: Iterable[bytes], count: int) -> list[Any]:
    """The results of `count` tasks, in their order. Raises the first failure among them."""
    found: dict[int, dict[str, Any]] = dict(map(json.loads, outcomes))
    if len(found) != count:
        msg = f"{len(found)} of {count} tasks have reported"
        raise InternalError(msg)
    results = []
    for index in range(count):
        failure = found[index].get("failure")
        if failure is not None:
            domain, message, hint = failure
            raise _DOMAINS.get(domain, InternalError)(message, hint=hint)
        results.append(found[index]["result"])
    return results


def _domain(problem: MillstreamError) -> str:
    return next((name for name, domain in _DOMAINS.items() if isinstance(problem, domain)), "internal")
