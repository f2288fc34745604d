"""Mini-batches: an epoch is a mini-batch.

Promises: with table.exec.mini-batch.enabled, rows are buffered no longer than table.exec.mini-batch.allow-latency. The
target duration of the epochs is reduced to this latency, unless the program sets the duration itself.
Does not know: plans. Operators emit the changes of a key once in a mini-batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from millstream import options
from millstream.config.configuration import Configuration
from millstream.sql.types.durations import parse_duration_millis
from millstream.sql_options import MINI_BATCH_ENABLED, MINI_BATCH_LATENCY


@contextmanager
def limit_epochs_to_mini_batch(configuration: Configuration) -> Iterator[None]:
    """Submit the jobs in this context with epochs that are no longer than the latency of a mini-batch."""
    target = options.EPOCH_TARGET_DURATION
    latency = parse_duration_millis(configuration.get_string(MINI_BATCH_LATENCY.key, "0 ms"))
    epoch_duration = configuration.get(target).to_milliseconds()
    is_enabled = configuration.get_boolean(MINI_BATCH_ENABLED.key, False)
    if not is_enabled or not 0 < latency < epoch_duration or target.key in configuration.key_set():
        yield
        return
    configuration.set(target, f"{latency} ms")
    try:
        yield
    finally:
        configuration.remove_config(target.key)
