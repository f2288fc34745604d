"""Tests of your own functions and pipelines without Spark; transcripts are in `millstream.testing.transcript`.

The servers for tests are in modules of their own: `kafka`, `kafka_cluster`, `postgres`, `s3`, `schema_registry` and
`spark_cluster`."""

from millstream.testing.clock import ManualClock
from millstream.testing.functions import harness_for
from millstream.testing.harness import HarnessMisused, OperatorHarness, Record, Snapshot, Timer

__all__ = ["HarnessMisused", "ManualClock", "OperatorHarness", "Record", "Snapshot", "Timer", "harness_for"]
