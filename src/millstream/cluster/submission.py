"""A job as it is handed to its JobMaster.

Promises: everything that is known before the job runs.
Does not know: how it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.cluster.adoption import Layout
from millstream.cluster.leadership import Leadership
from millstream.cluster.rescale import Adaptive
from millstream.cluster.settings import JobSettings
from millstream.engine.contract import Deployment
from millstream.graph.execution_plan import ExecutionPlan


@dataclass(frozen=True)
class SubmittedJob:
    """A program ready to run."""

    id: str
    name: str
    plan: ExecutionPlan
    settings: JobSettings
    deployment: Callable[[str], Deployment]
    leadership: Leadership | None = None
    layout: Layout | None = None
    adaptive: Adaptive | None = None
    incarnation: str = ""  # random: the one the job gets if it has no checkpoint of its own to go on from
