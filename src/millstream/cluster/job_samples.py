"""Samples of a running job: stacks of its tasks, dropped records, and keys with many records.

Promises: memory is bounded; the methods may be called from any thread.
Does not know: who looks at them."""

from __future__ import annotations

from dataclasses import replace

from millstream import options
from millstream.cluster.dropped_records import DroppedRecords
from millstream.cluster.flame_graphs import FlameGraphs
from millstream.cluster.hot_keys import HotKeys
from millstream.cluster.job_events import EpochDone
from millstream.config.configuration import Configuration
from millstream.times import Clock


class JobSamples:
    """The samples of one job."""

    def __init__(self, configuration: Configuration, clock: Clock) -> None:
        is_hidden = not configuration.get(options.SHOW_DROPPED_RECORDS)
        self.flame_graphs = FlameGraphs(configuration, clock)
        self.dropped_records = DroppedRecords(clock, redacted=is_hidden)
        self.hot_keys = HotKeys(hidden=is_hidden)

    def add(self, epoch: EpochDone) -> EpochDone:
        """Add the samples of an epoch, and return the epoch without the large ones."""
        if epoch.stacks:
            self.flame_graphs.add(epoch.stacks)
        if epoch.samples:
            self.dropped_records.add(epoch.samples)
        if epoch.keys:
            self.hot_keys.add(epoch.keys)
        return replace(epoch, stacks={}, keys={}) if epoch.stacks or epoch.keys else epoch
