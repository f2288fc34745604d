"""Pickles a program for the workers.

Promises: a program that cannot be pickled is refused, and the error names the operator that cannot.
Does not know: how bytes are sent."""

from __future__ import annotations

import cloudpickle

from millstream.engine.contract import Deployment
from millstream.errors import UserError


class UnserialisableProgram(UserError):
    """A function of the program cannot be sent to the workers."""

    hint = "open files, locks, sockets and Spark objects in open(), not in the function's fields or closure"

    def __init__(self, operator: str | None, reason: str) -> None:
        self.operator = operator
        subject = "the program" if operator is None else f"operator '{operator}'"
        super().__init__(f"{subject} cannot be pickled: {reason}")


def pickle_deployment(deployment: Deployment) -> bytes:
    """Pickle the deployment; functions of the main module are pickled by value."""
    try:
        data: bytes = cloudpickle.dumps(deployment, 5)
    except Exception as problem:
        raise UnserialisableProgram(_unpicklable_operator(deployment), str(problem)) from problem
    return data


def _unpicklable_operator(deployment: Deployment) -> str | None:
    for planned in deployment.plan.vertices:
        for node in planned.task.operators:
            try:
                cloudpickle.dumps(node.spec, 5)
            except Exception:
                return node.name
    return None
