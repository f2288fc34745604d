"""The stages of an epoch's job, made of PySpark's own parts on the JVM: bytes as they are, and slots that keep their
workers.

Promises: Spark sees pairs (target slot, bytes) and pickles nothing; slots that are pinned each run in Python workers of
their own, so that a slot finds its state where it left it; a job is built with few calls to the JVM, for they are most
of the time of a small epoch.
Does not know: what is inside a block or a program.

Spark gives a task to whichever of its idle Python workers has been idle for longest, so slots would change places in
every other epoch. It keeps apart only workers with different environments: a pinned stage is the union of one RDD for
each slot, whose environment names the slot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark import Broadcast, SparkContext
from pyspark.serializers import CloudPickleSerializer, NoOpSerializer, pack_long
from pyspark.util import _load_from_socket

from millstream.engine.spark.broadcasts import LARGE, ended_with_job

Run = Callable[[int, Iterable[bytes]], Iterable[bytes]]  # what a slot makes of what came for it
Blocks = Any  # an RDD of bytes, on the JVM

_commands: Any = CloudPickleSerializer
_frames: Any = NoOpSerializer
_packed: Callable[[int], bytes] = pack_long

_SLOT = "MILLSTREAM_SLOT"


def addressed(pairs: Iterable[tuple[int, bytes]]) -> Iterator[bytes]:
    """Pairs (target slot, block) as `exchanged` wants them: targets and blocks in turn."""
    for target, block in pairs:
        yield _packed(target)
        yield block


class _Commands(threading.local):
    """Commands that were broadcast for the job that this thread makes."""

    def __init__(self) -> None:
        self.broadcasts: list[Broadcast[Any]] = []


class Stages:
    """Makes the stages of one deployment's epochs; `broadcasts` are those that its commands name."""

    def __init__(self, context: SparkContext, slots: int, broadcasts: Iterable[Broadcast[Any]]) -> None:
        self.slots = slots
        self._context = context
        jvm: Any = context._jvm
        self._python = jvm.PythonRDD
        self._function, self._pairs = jvm.SimplePythonFunction, jvm.PairwiseRDD
        self._partitioner = jvm.PythonPartitioner(slots, 0)
        self._broadcasts = [broadcast._jbroadcast for broadcast in broadcasts]
        self._named = _listed(jvm, self._broadcasts)
        self._includes = _listed(jvm, context._python_includes or ())
        self._usual = _mapped(jvm, context.environment)
        self._own = [_mapped(jvm, {**context.environment, _SLOT: str(slot)}) for slot in range(slots)]
        self._prune = jvm.org.apache.spark.rdd.PartitionPruningRDD.create
        nothing = getattr(getattr(jvm.scala.collection.immutable, "Set$"), "MODULE$").empty()
        self._only = [getattr(nothing, "$plus")(slot) for slot in range(slots)]  # a set is a function of its elements
        self._java_rdd = getattr(jvm, "org.apache.spark.api.java.JavaRDD")
        self._sent = _Commands()  # tasks between epochs are sent by another thread than an epoch

    def seeds(self) -> Blocks:
        """An empty block for each slot, where there is nothing yet; no Python is needed to make them."""
        jvm: Any = self._context._jvm
        frames = (bytearray(frame) for frame in addressed((slot, b"") for slot in range(self.slots)))
        return self._context._jsc.parallelize(_listed(jvm, frames), self.slots).rdd()

    def staged(self, before: Blocks, run: Run) -> Blocks:
        """A stage that runs slots in whatever workers there are."""
        return self._stage(before, run, self._usual)

    def pinned(self, before: Blocks, runs: Sequence[Run]) -> Blocks:
        """A stage that runs each slot in workers of its own, with the function that is its."""
        gateway: Any = SparkContext._gateway
        slots = gateway.new_array(self._java_rdd, self.slots)
        for slot, (run, only, own) in enumerate(zip(runs, self._only, self._own, strict=True)):
            slots[slot] = self._stage(self._prune(before, only), run, own).asJavaRDD()
        return self._context._jsc.union(slots).rdd()

    def exchanged(self, blocks: Blocks) -> Blocks:
        """What a stage made, each block at the slot it is addressed to."""
        pairs = self._pairs(blocks).asJavaPairRDD()
        return self._python.valueOfPair(pairs.partitionBy(self._partitioner)).rdd()

    def collected(self, blocks: Blocks) -> list[bytes]:
        """Run the job; gives what its last stage made."""
        with (
            ended_with_job(self._sent.broadcasts),
            _load_from_socket(self._python.collectAndServe(blocks), _frames()) as stream,
        ):
            return list(stream)

    def _stage(self, before: Blocks, run: Run, environment: Any) -> Blocks:
        context = self._context
        command = _commands().dumps((run, None, _frames(), _frames()))
        context._pickled_broadcast_vars.clear()
        named = self._named
        if len(command) > LARGE:
            broadcast = context.broadcast(command)
            self._sent.broadcasts.append(broadcast)
            command = _commands().dumps(broadcast)
            context._pickled_broadcast_vars.clear()
            named = _listed(context._jvm, [*self._broadcasts, broadcast._jbroadcast])
        function = self._function(
            bytearray(command),
            environment,
            self._includes,
            context.pythonExec,
            context.pythonVer,
            named,
            context._javaAccumulator,
        )
        return self._python(before, function, False, False)


def _listed(jvm: Any, items: Iterable[Any]) -> Any:
    made = jvm.java.util.ArrayList()
    for item in items:
        made.add(item)
    return made


def _mapped(jvm: Any, items: Mapping[str, str]) -> Any:
    made = jvm.java.util.HashMap()
    for key, value in items.items():
        made.put(key, value)
    return made
