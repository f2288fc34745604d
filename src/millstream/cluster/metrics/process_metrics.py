"""The metrics of the driver's process, under the names that Flink has for its JVM.

Promises: reading costs a few system calls; metrics that the operating system does not provide are left out.
Does not know: jobs."""

from __future__ import annotations

import gc
import os
import resource
import threading
from pathlib import Path

from millstream.cluster.metrics.metric import Value

_NANOS = 1_000_000_000


def process_metrics() -> dict[str, Value]:
    """Return the metrics of this process by name. Heap is the resident memory, of at most the machine's memory."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    page = os.sysconf("SC_PAGE_SIZE")
    collections = sum(int(generation["collections"]) for generation in gc.get_stats())
    metrics: dict[str, Value] = {
        "Status.JVM.CPU.Time": round((usage.ru_utime + usage.ru_stime) * _NANOS),
        "Status.JVM.CPU.Load": os.getloadavg()[0] / (os.cpu_count() or 1),
        "Status.JVM.Memory.Heap.Max": os.sysconf("SC_PHYS_PAGES") * page,
        "Status.JVM.Threads.Count": threading.active_count(),
        "Status.JVM.GarbageCollector.All.Count": collections,
        "Status.JVM.FileDescriptor.Max": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    }
    proc = Path("/proc/self")
    if proc.exists():
        resident = int((proc / "statm").read_text().split()[1]) * page
        metrics["Status.JVM.Memory.Heap.Used"] = metrics["Status.JVM.Memory.Heap.Committed"] = resident
        metrics["Status.JVM.FileDescriptor.Open"] = len(list((proc / "fd").iterdir()))
    return metrics
