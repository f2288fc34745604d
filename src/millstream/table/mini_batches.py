"""Mini-batches: an epoch is one.

Promises: with table.exec.mini-batch.enabled, rows wait for one another no longer than
table.exec.mini-batch.allow-latency: epochs of the session's jobs are made as short as that, unless the program says
itself how long they take.
Does not know: plans; that changes of a key are told once in a mini-batch is the operators' business."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from millstream import options
from millstream.config.configuration import Configuration
from millstream.sql.types.durations import duration_millis
from millstream.sql_options import MINI_BATCH_ENABLED, MINI_BATCH_LATENCY


@contextmanager
def paced(configuration: Configuration) -> Iterator[None]:
    """Submit jobs with epochs that are no longer than a mini-batch may wait."""
    target = options.EPOCH_TARGET_DURATION
    latency = duration_millis(configuration.get_string(MINI_BATCH_LATENCY.key, "0 ms"))
    usual = configuration.get(target).to_milliseconds()
    enabled = configuration.get_boolean(MINI_BATCH_ENABLED.key, False)
    if not enabled or not 0 < latency < usual or target.key in configuration.key_set():
        yield
        return
    configuration.set(target, f"{latency} ms")
    try:
        yield
    finally:
        configuration.remove_config(target.key)
