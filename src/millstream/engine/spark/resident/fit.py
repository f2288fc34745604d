"""Whether a program fits into resident slots of a Spark.

Promises: what prevents it is one sentence that names what is missing. A stage never takes the last task slot: tasks
between epochs, queries and other jobs need one.
Does not know: how stages run."""

from __future__ import annotations

from typing import Any

from millstream.engine.contract import Deployment
from millstream.engine.spark.placement import await_slots, count_task_slots, is_one_process
from millstream.engine.spark.shared import is_shared

_FREE = 1  # task slots that a stage leaves to others
_ENCRYPTION = ("spark.network.crypto.enabled", "spark.ssl.enabled", "spark.authenticate.enableSaslEncryption")


def find_obstacle(context: Any, deployment: Deployment, held: int) -> str | None:
    """Return why a program cannot run on resident slots; None if it can. `held` is how many task slots the resident
    stages of this process hold."""
    if deployment.plan.batch:
        return "it is a batch job"
    return find_setting(context) or _find_shortage(context, deployment.plan.slots, held)


def find_setting(context: Any) -> str | None:
    """Return the setting of a Spark that prevents resident slots; None if there is none."""
    conf = context.getConf()
    if _is_on(conf, "spark.dynamicAllocation.enabled"):
        return "spark.dynamicAllocation.enabled is true, and Spark runs no barrier stages with dynamic allocation"
    if not is_one_process(str(context.master)):
        for key in _ENCRYPTION:
            if _is_on(conf, key):
                return f"{key} is true, and the connections between resident slots are not encrypted"
    return None


def _find_shortage(context: Any, slots: int, held: int) -> str | None:
    required = slots + held + _FREE
    if not is_one_process(str(context.master)):
        await_slots(context, required)
    running = count_task_slots(context)
    busy = max(held, _count_running_tasks(context)) if is_shared(context) else held
    if running - busy >= slots + _FREE:
        return None
    return (
        f"it needs {slots + _FREE} free task slots, {slots} for its subtasks and {_FREE} for tasks between epochs, but "
        f"Spark has {running}, of which {busy} are taken"
    )


def _is_on(conf: Any, key: str) -> bool:
    return str(conf.get(key, "false")).lower() == "true"


def _count_running_tasks(context: Any) -> int:
    """Return how many tasks run, those of other programs included."""
    return sum(int(info.numRunningTasks()) for info in context._jsc.sc().statusTracker().getExecutorInfos())
