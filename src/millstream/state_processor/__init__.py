"""Savepoints and checkpoints read, written and edited outside a job: Flink's state processor, and a short way.

    Savepoint(path).operator("counts").state("count").to_pandas()

Promises: any state of any snapshot as Arrow, pandas or a Spark DataFrame; what is written, a job restores."""

from millstream.state_processor.bootstrap import (
    BroadcastStateBootstrapFunction,
    KeyedStateBootstrapFunction,
    OperatorTransformation,
    StateBootstrapFunction,
    StateBootstrapTransformation,
)
from millstream.state_processor.identifier import OperatorIdentifier
from millstream.state_processor.reader import KeyedStateReaderFunction, SavepointReader
from millstream.state_processor.snapshot import Savepoint, SavepointOperator, SavepointState
from millstream.state_processor.writer import SavepointWriter

__all__ = [
    "BroadcastStateBootstrapFunction",
    "KeyedStateBootstrapFunction",
    "KeyedStateReaderFunction",
    "OperatorIdentifier",
    "OperatorTransformation",
    "Savepoint",
    "SavepointOperator",
    "SavepointReader",
    "SavepointState",
    "SavepointWriter",
    "StateBootstrapFunction",
    "StateBootstrapTransformation",
]
