"""REST resources of task managers: Spark's executors, which are shown as one.

Promises: Flink's fields. Spark places tasks and manages memory, so resources and addresses are not known here: numbers
that Flink would measure are 0.
Does not know: executors."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from typing_extensions import TypedDict

from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import NotFound

SPARK = "spark"
_RESOURCE = {
    "cpuCores": 0.0,
    "taskHeapMemory": 0,
    "taskOffHeapMemory": 0,
    "managedMemory": 0,
    "networkMemory": 0,
    "extendedResources": {},
}
_MEMORY = (  # of a Java virtual machine: 0 here
    *("heapUsed", "heapCommitted", "heapMax", "nonHeapUsed", "nonHeapCommitted", "nonHeapMax"),
    *("directCount", "directUsed", "directMax", "mappedCount", "mappedUsed", "mappedMax"),
    *("memorySegmentsAvailable", "memorySegmentsTotal", "nettyShuffleMemorySegmentsAvailable"),
    *("nettyShuffleMemorySegmentsUsed", "nettyShuffleMemorySegmentsTotal", "nettyShuffleMemoryAvailable"),
    *("nettyShuffleMemoryUsed", "nettyShuffleMemoryTotal"),
)


class TaskManager(TypedDict):
    """A task manager."""

    id: str
    path: str
    dataPort: int
    jmxPort: int
    timeSinceLastHeartbeat: int
    slotsNumber: int
    freeSlots: int
    totalResource: dict[str, Any]
    freeResource: dict[str, Any]
    hardware: dict[str, int]
    memoryConfiguration: dict[str, int]


class TaskManagerDetails(TaskManager):
    """A task manager with the fields that the dashboard shows of its memory: 0, since Spark knows that of executors."""

    metrics: dict[str, Any]
    allocatedSlots: list[Any]


class TaskManagers(TypedDict):
    """The task managers."""

    taskmanagers: list[TaskManager]


class NoSuchTaskManager(NotFound):
    """There is no task manager of this id."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no task manager '{name[:100]}'", hint=f"the executors of Spark are '{SPARK}'")


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of task managers."""
    router = APIRouter(tags=["task managers"])

    @router.get("/taskmanagers")
    def list_task_managers() -> TaskManagers:
        """Return the executors of Spark as one task manager, if there are slots."""
        total, _ = _slots(context)
        return {"taskmanagers": [_describe(context)] if total else []}

    @router.get("/taskmanagers/{name}")
    def get_task_manager(name: str) -> TaskManagerDetails:
        """Return the executors of Spark as one task manager."""
        if name != SPARK:
            raise NoSuchTaskManager(name)
        memory = dict.fromkeys(_MEMORY, 0)
        return {**_describe(context), "metrics": {**memory, "garbageCollectors": []}, "allocatedSlots": []}

    return router


def _slots(context: RestContext) -> tuple[int, int]:
    if context.session is not None:
        return context.session.slots()
    jobs = [job for job in context.dispatcher.jobs() if not job.statistics().status.is_terminal_state()]
    return sum(job.plan().slots for job in jobs), 0


def _describe(context: RestContext) -> TaskManager:
    total, free = _slots(context)
    return {
        "id": SPARK,
        "path": SPARK,
        "dataPort": 0,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": context.clock.now(),
        "slotsNumber": total,
        "freeSlots": free,
        "totalResource": dict(_RESOURCE),
        "freeResource": dict(_RESOURCE),
        "hardware": {"cpuCores": 0, "physicalMemory": 0, "freeMemory": 0, "managedMemory": 0},
        "memoryConfiguration": {
            name: 0
            for name in (
                *("frameworkHeap", "taskHeap", "frameworkOffHeap", "taskOffHeap", "networkMemory", "managedMemory"),
                *("jvmMetaspace", "jvmOverhead", "totalFlinkMemory", "totalProcessMemory"),
            )
        },
    }
