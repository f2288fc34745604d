"""Tests of your own functions and pipelines, without a JVM; transcripts are in `millstream.testing.transcript`."""

from millstream.testing.clock import ManualClock
from millstream.testing.functions import harness_for
from millstream.testing.harness import HarnessMisused, OperatorHarness, Record, Snapshot, Timer

__all__ = ["HarnessMisused", "ManualClock", "OperatorHarness", "Record", "Snapshot", "Timer", "harness_for"]
