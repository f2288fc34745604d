"""Which engine runs a job: Spark jobs or resident slots, and why.

Promises: what is decided by the program and the settings is known without a Spark; whether there are enough task slots
is known only when the program is deployed.
Does not know: Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from millstream.config.configuration import Configuration
from millstream.graph.execution_plan import ExecutionPlan
from millstream.options import ENGINE, SPARK_MASTER

_ENCRYPTION = ("spark.network.crypto.enabled", "spark.ssl.enabled", "spark.authenticate.enableSaslEncryption")


def find_setting(get: Callable[[str, str], Any], master: str) -> str | None:
    """Return the setting of a Spark that prevents resident slots; None if there is none."""

    def is_on(key: str) -> bool:
        return str(get(key, "false")).lower() == "true"

    if is_on("spark.dynamicAllocation.enabled"):
        return "spark.dynamicAllocation.enabled is true, and Spark runs no barrier stages with dynamic allocation"
    if not is_one_process(master):
        for key in _ENCRYPTION:
            if is_on(key):
                return f"{key} is true, and the connections between resident slots are not encrypted"
    return None


def is_one_process(master: str) -> bool:
    """Whether driver and executor are the same process."""
    return master == "local" or master.startswith("local[")


def describe_engine(plan: ExecutionPlan, configuration: Configuration) -> str:
    """Return which engine runs a plan, and why, as far as that is known without a Spark."""
    engine = configuration.get(ENGINE)
    settings: Mapping[str, str] = configuration.to_dict()
    if plan.batch:
        return "Spark jobs, because it is a batch job"
    if engine == "jobs":
        return f"Spark jobs, because {ENGINE.key} is jobs"
    obstacle = find_setting(settings.get, settings.get("spark.master") or configuration.get(SPARK_MASTER))
    if obstacle is not None:
        return f"Spark jobs, because {obstacle}" if engine == "auto" else f"none, because {obstacle}"
    required = f"if Spark has {plan.slots} free task slots"
    otherwise = "else Spark jobs" if engine == "auto" else "else the job fails"
    return f"resident slots {required}, {otherwise}"
