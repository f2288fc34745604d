"""A submitted job, before it runs.

Promises: a frozen value.
Does not know: how the job runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.cluster.leadership import Leadership
from millstream.cluster.max_parallelism import JobLayout
from millstream.cluster.rescale import Adaptive
from millstream.cluster.settings import JobSettings
from millstream.engine.contract import Deployment
from millstream.graph.execution_plan import ExecutionPlan


@dataclass(frozen=True)
class SubmittedJob:
    """A checked program with its settings. `deployment` creates the deployment of a given id."""

    id: str
    name: str
    plan: ExecutionPlan
    settings: JobSettings
    deployment: Callable[[str], Deployment]
    leadership: Leadership | None = None
    layout: JobLayout | None = None
    adaptive: Adaptive | None = None
    incarnation: str = ""  # random; used if the job has no checkpoint of its own to restore
