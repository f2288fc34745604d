"""Whether a program fits into resident slots of a Spark.

Promises: what prevents it is one sentence that names what is missing.
Does not know: how stages run."""

from __future__ import annotations

import time
from typing import Any

from millstream.engine.choice import find_setting, is_one_process
from millstream.engine.contract import Deployment
from millstream.engine.spark.placement import await_slots, count_task_slots
from millstream.engine.spark.shared import is_shared

_FIRST_EXECUTOR = 60.0  # seconds to wait for


def find_obstacle(context: Any, deployment: Deployment, held: int, patience: float) -> str | None:
    """Return why a program cannot run on resident slots; None if it can. `held` is how many task slots the resident
    stages of this process hold. On a cluster with too few, it waits up to `patience` seconds for more, and as long as
    the jobs engine would for the first one."""
    if deployment.plan.batch:
        return "it is a batch job"
    obstacle = find_context_setting(context)
    if obstacle is None and not is_one_process(str(context.master)):
        _await_slots(context, deployment.plan.slots + held, patience)
    return obstacle or _find_shortage(context, deployment.plan.slots, held)


def find_context_setting(context: Any) -> str | None:
    """Return the setting of a running Spark that prevents resident slots; None if there is none."""
    return find_setting(context.getConf().get, str(context.master))


def _await_slots(context: Any, slots: int, patience: float) -> None:
    begin = time.monotonic()
    while True:
        await_slots(context, slots)
        running = count_task_slots(context)
        if running >= slots or time.monotonic() - begin >= (patience if running else _FIRST_EXECUTOR):
            return


def _find_shortage(context: Any, slots: int, held: int) -> str | None:
    running = count_task_slots(context)
    busy = max(held, _count_running_tasks(context)) if is_shared(context) else held
    if running - busy >= slots:
        return None
    return f"it needs {slots} free task slots, but Spark has {running}, of which {busy} are taken"


def _count_running_tasks(context: Any) -> int:
    """Return how many tasks run, those of other programs included."""
    return sum(int(info.numRunningTasks()) for info in context._jsc.sc().statusTracker().getExecutorInfos())
