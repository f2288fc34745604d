"""Calls of learners and column functions by operators.

Promises: a problem with the data names the operator; numbers that overflow are found by the learner, not by NumPy.
Does not know: learners, operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from millstream.errors import UserError
from millstream.runtime import rowwise
from millstream.runtime.operator import OperatorContext

P = ParamSpec("P")
R = TypeVar("R")


def call(context: OperatorContext, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function; a user error that it raises gets the name of the operator."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return function(*args, **kwargs)
    except UserError as problem:
        raise rowwise.failure(context.name, problem) from problem
