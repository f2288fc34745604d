"""Iterations, with the names of Flink ML: a body of operators whose results are fed back to its beginning.

Promises: an epoch between two rounds is a consistent cut, so an iteration is exactly once like every other program.
Does not know: graphs, learning; they are written on top."""

from millstream.functions import DeltaFunction, IterationContext, IterationListener, ParameterFunction, WorkerContext
from millstream.iteration.bulk import iterate
from millstream.iteration.delta import iterate_delta
from millstream.iteration.flink_ml import (
    IterationBody,
    IterationBodyResult,
    IterationConfig,
    Iterations,
)
from millstream.iteration.lifecycle import OperatorLifeCycle, for_each_round
from millstream.iteration.parameters import iterate_parameters
from millstream.iteration.stream_lists import DataStreamList, ReplayableDataStreamList
from millstream.iteration.termination import Criterion, Termination

__all__ = [
    "Criterion",
    "DataStreamList",
    "DeltaFunction",
    "IterationBody",
    "IterationBodyResult",
    "IterationConfig",
    "IterationContext",
    "IterationListener",
    "Iterations",
    "OperatorLifeCycle",
    "ParameterFunction",
    "ReplayableDataStreamList",
    "Termination",
    "WorkerContext",
    "for_each_round",
    "iterate",
    "iterate_delta",
    "iterate_parameters",
]
