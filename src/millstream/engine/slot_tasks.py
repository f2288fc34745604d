"""Outcomes of slot tasks as bytes, which workers send to the driver.

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
    """Run a task and return its outcome, with its index among the tasks."""
    try:
        outcome = {"result": task.run()}
    except MillstreamError as problem:
        outcome = {"failure": [_domain(problem), problem.message, problem.hint]}
    except Exception:
        outcome = {"failure": ["internal", traceback.format_exc(), None]}
    return json.dumps([index, outcome]).encode()


def collect_results(outcomes: Iterable[bytes], count: int) -> list[Any]:
    """Return the results of `count` tasks in their order, or raise the first failure."""
    outcome_of: dict[int, dict[str, Any]] = dict(map(json.loads, outcomes))
    if len(outcome_of) != count:
        msg = f"{len(outcome_of)} of {count} tasks have reported"
        raise InternalError(msg)
    results = []
    for index in range(count):
        failure = outcome_of[index].get("failure")
        if failure is not None:
            domain, message, hint = failure
            raise _DOMAINS.get(domain, InternalError)(message, hint=hint)
        results.append(outcome_of[index]["result"])
    return results


def _domain(problem: MillstreamError) -> str:
    return next((name for name, domain in _DOMAINS.items() if isinstance(problem, domain)), "internal")
