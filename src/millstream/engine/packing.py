"""A program as bytes for the workers.

Promises: what cannot be sent is refused with the operator at fault.
Does not know: how bytes travel."""

from __future__ import annotations

import cloudpickle

from millstream.engine.contract import Deployment
from millstream.errors import UserError


class UnserialisableProgram(UserError):
    """A function of the program cannot be sent to the workers."""

    hint = "open files, locks, sockets and Spark objects in open(), not in the function's fields or closure"

    def __init__(self, operator: str | None, reason: str) -> None:
        self.operator = operator
        where = "the program" if operator is None else f"operator '{operator}'"
        super().__init__(f"{where} cannot be pickled: {reason}")


def pickle_deployment(deployment: Deployment) -> bytes:
    """The deployment, pickled; functions of the main module by value."""
    try:
        data: bytes = cloudpickle.dumps(deployment, 5)
    except Exception as problem:
        raise UnserialisableProgram(_culprit(deployment), str(problem)) from problem
    return data


def _culprit(deployment: Deployment) -> str | None:
    for planned in deployment.plan.vertices:
        for node in planned.task.operators:
            try:
                cloudpickle.dumps(node.spec, 5)
            except Exception:
                return node.name
    return None
