"""Chooses how the stages of an epoch are built: on the JVM, or with PySpark's public API.

Promises: stages are built on the JVM if this Spark has the classes for it, which is tried once for each JVM without
running a job. Otherwise, and on request, the public API is used.
Does not know: what stages do."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark import Broadcast, SparkContext
from pyspark.resource import ResourceProfile

from millstream.engine.spark.public_stages import PublicStageBuilder
from millstream.engine.spark.stage_builder import StageBuilder

Stages = StageBuilder | PublicStageBuilder

_log = logging.getLogger("millstream.spark")
_tried: list[tuple[Any, bool]] = []  # the gateway of the JVM that was tried, and whether it has the classes


def create_stages(
    context: SparkContext,
    slots: int,
    broadcasts: Sequence[Broadcast[Any]],
    *,
    public_only: bool,
    profile: ResourceProfile | None = None,
) -> Stages:
    """Return a builder for stages whose commands refer to `broadcasts` and whose tasks have the resources of
    `profile`."""
    if public_only or not _can_build_on_jvm(context):
        return PublicStageBuilder(context, slots, profile)
    return StageBuilder(context, slots, broadcasts, profile)


def _can_build_on_jvm(context: SparkContext) -> bool:
    gateway = SparkContext._gateway
    if not _tried or _tried[0][0] is not gateway:
        _tried[:] = [(gateway, _try_on_jvm(context))]
    return _tried[0][1]


def _try_on_jvm(context: SparkContext) -> bool:
    """Build a job of two stages without running it."""
    try:
        stages = StageBuilder(context, 1, ())
        stages.exchange(stages.add_pinned_stage(stages.seeds(), [_pass_on]))
    except (AttributeError, TypeError, Py4JError) as problem:  # TypeError: a class of the JVM is missing
        _log.warning("epochs are slower with this Spark: stages are built with PySpark's public API only (%s)", problem)
        return False
    return True


def _pass_on(_: int, blocks: Iterable[bytes]) -> Iterable[bytes]:
    return blocks
