"""Builds the RDDs of the stages of an epoch on the JVM, from PySpark's own classes.

Promises: Spark sees pairs (target slot, bytes) and pickles nothing. Each pinned slot runs in Python workers of its own,
so that a slot finds its state where it left it. A job is built with few calls to the JVM, because they take most of the
time of a small epoch.
Does not know: what is inside a block or a program.

Spark gives a task to whichever of its idle Python workers has been idle for longest, so slots would swap workers in
every other epoch. Only workers with different environments are kept apart: a pinned stage is the union of one RDD for
each slot, whose environment names the slot."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark import RDD, Broadcast, SparkContext
from pyspark.resource import ResourceProfile
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer

from millstream.engine.spark.broadcasts import LARGE, release_after_job
from millstream.engine.spark.stage_frames import RunSlot, pack_targets
from millstream.engine.spark.task_resources import to_java

BlockRdd = Any  # an RDD of bytes, on the JVM

_commands: Any = CloudPickleSerializer
_frames: Any = NoOpSerializer

_SLOT = "MILLSTREAM_SLOT"


class _Commands(threading.local):
    """Commands that were broadcast for the job that this thread builds."""

    def __init__(self) -> None:
        self.broadcasts: list[Broadcast[Any]] = []


class StageBuilder:
    """Builds the stages of one deployment's epochs; `broadcasts` are those that its commands refer to, and `profile` is
    what Spark reserves for each task."""

    can_pin = True

    def __init__(
        self,
        context: SparkContext,
        slots: int,
        broadcasts: Iterable[Broadcast[Any]],
        profile: ResourceProfile | None = None,
    ) -> None:
        self.slots = slots
        self._profile = None if profile is None else to_java(profile)
        self._context = context
        jvm: Any = context._jvm
        self._python = jvm.PythonRDD
        self._function, self._pairs = jvm.SimplePythonFunction, jvm.PairwiseRDD
        self._partitioner = jvm.PythonPartitioner(slots, 0)
        self._broadcasts = [broadcast._jbroadcast for broadcast in broadcasts]
        self._java_broadcasts = _create_java_list(jvm, self._broadcasts)
        self._includes = _create_java_list(jvm, context._python_includes or ())
        self._environment = _create_java_map(jvm, context.environment)
        self._slot_environments = [
            _create_java_map(jvm, {**context.environment, _SLOT: str(slot)}) for slot in range(slots)
        ]
        self._prune = jvm.org.apache.spark.rdd.PartitionPruningRDD.create
        nothing = getattr(getattr(jvm.scala.collection.immutable, "Set$"), "MODULE$").empty()
        self._slot_sets = [
            getattr(nothing, "$plus")(slot) for slot in range(slots)
        ]  # a set is a function of its elements
        self._java_rdd = getattr(jvm, "org.apache.spark.api.java.JavaRDD")
        self._commands = _Commands()  # tasks between epochs are sent by another thread than an epoch

    def seeds(self) -> BlockRdd:
        """Return an empty block for each slot, the input of the first stage; no Python worker is needed for them."""
        jvm: Any = self._context._jvm
        frames = (bytearray(frame) for frame in pack_targets((slot, b"") for slot in range(self.slots)))
        return self._context._jsc.parallelize(_create_java_list(jvm, frames), self.slots).rdd()

    def add_stage(self, before: BlockRdd, run: RunSlot) -> BlockRdd:
        """Return a stage that runs slots in any worker."""
        return self._reserve(self._stage(before, run, self._environment))

    def add_pinned_stage(self, before: BlockRdd, runs: Sequence[RunSlot]) -> BlockRdd:
        """Return a stage that runs each slot in workers of its own, with its own function."""
        gateway: Any = SparkContext._gateway
        slots = gateway.new_array(self._java_rdd, self.slots)
        for slot, (run, only, environment) in enumerate(
            zip(runs, self._slot_sets, self._slot_environments, strict=True)
        ):
            slots[slot] = self._stage(self._prune(before, only), run, environment).asJavaRDD()
        return self._reserve(self._context._jsc.union(slots).rdd())

    def _reserve(self, stage: BlockRdd) -> BlockRdd:
        return stage if self._profile is None else stage.withResources(self._profile)

    def exchange(self, blocks: BlockRdd) -> BlockRdd:
        """Send each block of a stage to its target slot, by a shuffle."""
        pairs = self._pairs(blocks).asJavaPairRDD()
        return self._python.valueOfPair(pairs.partitionBy(self._partitioner)).rdd()

    def collect(self, blocks: BlockRdd) -> list[bytes]:
        """Run the job and return the blocks of its last stage."""
        with release_after_job(self._commands.broadcasts):
            return RDD(blocks.toJavaRDD(), self._context, _frames()).collect()

    def _stage(self, before: BlockRdd, run: RunSlot, environment: Any) -> BlockRdd:
        context = self._context
        command = _commands().dumps((run, None, _frames(), _frames()))
        context._pickled_broadcast_vars.clear()
        broadcasts = self._java_broadcasts
        if len(command) > LARGE:
            broadcast = context.broadcast(command)
            self._commands.broadcasts.append(broadcast)
            command = _commands().dumps(broadcast)
            context._pickled_broadcast_vars.clear()
            broadcasts = _create_java_list(context._jvm, [*self._broadcasts, broadcast._jbroadcast])
        function = self._function(
            bytearray(command),
            environment,
            self._includes,
            context.pythonExec,
            context.pythonVer,
            broadcasts,
            context._javaAccumulator,
        )
        return self._python(before, function, False, False)


def _create_java_list(jvm: Any, items: Iterable[Any]) -> Any:
    java_list = jvm.java.util.ArrayList()
    for item in items:
        java_list.add(item)
    return java_list


def _create_java_map(jvm: Any, items: Mapping[str, str]) -> Any:
    java_map = jvm.java.util.HashMap()
    for key, value in items.items():
        java_map.put(key, value)
    return java_map
