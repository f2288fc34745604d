"""Deletes the scratch directory of an ended job on the hosts of its executors.

Promises: every executor that has a free slot deletes the job's directory on its host; this takes no longer than its
deadline, and never raises. Files on a host that could not be reached are deleted when the next job starts there.
Does not know: what is in the directory."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from millstream.engine.choice import is_one_process
from millstream.engine.scratch import remove_parts
from millstream.engine.spark.placement import count_running_slots

_log = logging.getLogger("millstream.spark")

_DEADLINE = 30.0  # seconds


def clean_hosts(context: SparkContext, scratch: str) -> None:
    """Delete a job's directory on all hosts but this one, which the driver cleans itself."""
    if is_one_process(str(context.master)):
        return
    group = f"clean up {scratch}"
    deadline = threading.Timer(_DEADLINE, context.cancelJobGroup, [group])
    deadline.daemon = True
    deadline.start()
    try:
        slots = count_running_slots(context)
        context.setJobGroup(group, "delete local files of an ended job", True)
        if slots:
            context.parallelize(range(slots), slots).foreachPartition(functools.partial(_remove, scratch))
    except (Py4JError, PySparkException, OSError) as problem:
        _log.info("local files may be left on executors, in %s: %s", scratch, problem)
    finally:
        deadline.cancel()


def _remove(scratch: str, partition: Iterable[Any]) -> None:
    list(partition)
    remove_parts(scratch)
