"""Pipelines of changes, described in YAML as Flink CDC's: databases copied to sinks, with their changes.

    from millstream.cdc import read_pipeline, run_pipeline

    run_pipeline(read_pipeline("pipeline.yaml"), {"parallelism.default": "2"})

Promises: the blocks `source`, `sink`, `route`, `transform` and `pipeline` of Flink CDC; what is not supported is
refused by name. When columns of a source table change, the sink gets them, and no change of a row is lost or repeated.
Does not know: how changes are captured and tables are written; connectors do."""

from millstream.cdc.definition import Pipeline, read_pipeline
from millstream.cdc.running import run_pipeline

__all__ = ["Pipeline", "read_pipeline", "run_pipeline"]
