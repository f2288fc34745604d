"""What Spark reserves for each task of a job, as a profile of Spark's stage-level scheduling.

Promises: a job without resources has no profile. Where Spark has no profiles, which is on one machine, the job runs
without one, and a warning says so once.
Does not know: slot sharing groups, or what tasks do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.resource import ResourceProfile, ResourceProfileBuilder, TaskResourceRequests

CPUS = "cpus"

_log = logging.getLogger("millstream.spark")
_warned: set[str] = set()


def create_profile(context: SparkContext, resources: Mapping[str, str] | None) -> ResourceProfile | None:
    """Return the profile of tasks that need these amounts of resources, by name; `cpus` are whole cores."""
    if not resources:
        return None
    requests = TaskResourceRequests()
    for name, amount in resources.items():
        requests = requests.cpus(int(amount)) if name == CPUS else requests.resource(name, float(amount))
    profile = ResourceProfileBuilder().require(requests).build
    try:
        context._jsc.sc().resourceProfileManager().isSupported(to_java(profile))
    except Py4JError as problem:
        cause: Any = getattr(problem, "java_exception", None)
        reason = str(problem) if cause is None else str(cause.getMessage())
        if reason not in _warned:
            _warned.add(reason)
            _log.warning("the resources of slot sharing groups are not reserved: %s", reason)
        return None
    return profile


def to_java(profile: ResourceProfile) -> Any:
    """Return the profile as the JVM knows it."""
    java_profile: Any = profile._java_resource_profile
    assert java_profile is not None, "it is built with a running Spark"
    return java_profile
