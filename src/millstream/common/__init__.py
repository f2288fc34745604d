"""PyFlink's `common` package: configuration, types, rows, time, schemas and job handles.

Promises: every public name of pyflink.common that does not wrap a Java object.
Does not know: streams or tables."""

from __future__ import annotations

import importlib
from typing import Any

from millstream.common.completable_future import CompletableFuture
from millstream.common.config_options import ConfigOption, ConfigOptions
from millstream.common.configuration import Configuration
from millstream.common.execution_config import ExecutionConfig
from millstream.common.input_dependency_constraint import InputDependencyConstraint
from millstream.common.job_client import JobClient
from millstream.common.job_execution_result import JobExecutionResult
from millstream.common.job_id import JobID
from millstream.common.job_status import JobStatus
from millstream.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from millstream.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from millstream.common.serializer import TypeSerializer
from millstream.common.time import Duration, Instant, Time
from millstream.common.typeinfo import TypeInformation, Types
from millstream.common.types import Row, RowKind
from millstream.common.watermark_strategy import WatermarkStrategy

__all__ = [
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "InputDependencyConstraint",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TypeInformation",
    "TypeSerializer",
    "Types",
    "WatermarkStrategy",
]

#: Schemas that PyFlink offers here as well as in `datastream.formats`, by the module that has them. They are loaded
#: when they are first used, because `datastream` imports `common`.
_FORMATS = {
    f"{format_name}Row{direction}Schema": f"millstream.datastream.formats.{format_name.lower()}"
    for format_name in ("Avro", "Csv", "Json")
    for direction in ("Deserialization", "Serialization")
}


def __getattr__(name: str) -> Any:
    if name in _FORMATS:
        return getattr(importlib.import_module(_FORMATS[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
