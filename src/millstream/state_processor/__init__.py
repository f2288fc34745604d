"""Flink's State Processor API: read, write and edit savepoints and checkpoints without running the job.

`Savepoint` is the short way to read state:

    Savepoint(path).operator("counts").state("count").to_pandas()

Promises: any state of any savepoint or checkpoint can be read as an Arrow table, a pandas or a Spark DataFrame; a job
can be started from every savepoint that is written here."""

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
