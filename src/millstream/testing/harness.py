"""A harness that runs an operator or a small pipeline step by step: the test provides records, watermarks and time.

Promises: a step is one epoch of the same tasks as in a job, with blocks as bytes, state files and reports between
them; a snapshot has the format of a checkpoint and can be restored at any parallelism.
Does not know: sources, sinks, Spark. Subtasks run one after another in the calling thread."""

from __future__ import annotations

import hashlib
import itertools
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.restore import OperatorShape, Restored, assign
from millstream.cluster.progress import collect_attempts
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.errors import ExternalError, InternalError, MillstreamError, UserError
from millstream.event_time.timers import TimeDomain
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.transformations import Chaining, Input
from millstream.runtime.keys import KeySelection
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operator import OperatorSpec
from millstream.runtime.partitioners import Hash
from millstream.runtime.report import TaskFailure
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.state.backend import OperatorState
from millstream.state.compaction import Compaction
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.state_descriptors.output_tag import OutputTag
from millstream.testing.clock import ManualClock
from millstream.testing.ends import CollectSpec, FeedSpec, Rows, Watermark
from millstream.testing.inline_engine import InlineEngine
from millstream.types.factory import TypeInformation, Types

_numbers = itertools.count(1)
_files: dict[str, dict[str, bytes]] = {}

Compactions = Callable[[Lineage], Compaction | None]


class HarnessMisused(UserError):
    """A harness was called in a way that it does not support."""


class Record(NamedTuple):
    """A record that the pipeline emitted, with its timestamp (None if it has none).

    Example:
        >>> with OperatorHarness(lambda stream: stream.map(str)) as harness:
        ...     harness.process(1, timestamp=1_000)
        ...     harness.output
        [Record(value='1', timestamp=1000)]

    """

    value: Any
    timestamp: int | None


class Timer(NamedTuple):
    """A registered timer; `namespace` is its window, or None outside of windows.

    Example:
        >>> from millstream.datastream import KeyedProcessFunction
        >>> from millstream.testing import harness_for
        >>> class Reminder(KeyedProcessFunction):
        ...     def process_element(self, value, ctx):
        ...         ctx.timer_service().register_event_time_timer(60_000)
        >>> with harness_for(Reminder(), key=lambda name: name) as harness:
        ...     harness.process("ann", timestamp=1_000)
        ...     [(timer.key, timer.time) for timer in harness.timers()]
        [('ann', 60000)]

    """

    domain: TimeDomain
    time: int
    key: Any
    namespace: Any


@dataclass(frozen=True)
class Snapshot:
    """A snapshot of a pipeline: the metadata of a checkpoint and the state files that it names.

    Example:
        >>> with OperatorHarness(lambda stream: stream.map(str)) as harness:
        ...     snapshot = harness.snapshot()
        ...     harness.restore(snapshot, parallelism=2)
        ...     harness.process(1)
        ...     harness.values()
        ['1']

    """

    metadata: bytes
    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class MemoryFiles:
    """State files in a dictionary of this process; an unpickled copy has the same files."""

    home: str

    def write(self, name: str, data: bytes) -> Handle:
        """Store a file under a name that no other harness uses."""
        full = f"{self.home}/{name}"
        _files[self.home][full] = data
        return Handle(full, len(data), hashlib.sha256(data).hexdigest(), 0)

    def read(self, handle: Handle) -> bytes:
        """Return the content of a file."""
        data = _files[self.home][handle.name]
        if hashlib.sha256(data).hexdigest() != handle.sha256:
            msg = f"state file '{handle.name}' does not have the checksum with which it was written"
            raise InternalError(msg)
        return data


class OperatorHarness:
    """Run a pipeline step by step, without Spark.

    Use it in a `with` statement, or call `close` at the end. For a single function, `harness_for` is shorter.

    Args:
        define: Builds the pipeline with the DataStream API from one stream for each of `input_types`, and returns the
            stream whose records are collected.
        input_types: The types of the inputs: one, or two for connected streams. None stands for any Python object.
        side_outputs: The side outputs that are collected.
        parallelism: The number of subtasks.
        max_parallelism: The number of key groups.
        backend: The state backend, `hashmap` or `rocksdb`.
        block_records: How many records a block between two subtasks holds at most.
        cache_limit: The size of the cache of state on disk, in bytes.
        clock: The clock of processing time; without it, a clock that starts at 0.
        parameters: The global job parameters.
        compact: Decides whether the state files of a subtask are compacted, for tests of millstream itself.

    Example:
        >>> with OperatorHarness(lambda stream: stream.map(lambda number: number + 1)) as harness:
        ...     harness.process(1)
        ...     harness.values()
        [2]

    """

    def __init__(
        self,
        define: Callable[..., DataStream],
        *,
        input_types: Sequence[TypeInformation | None] = (None,),
        side_outputs: Sequence[OutputTag] = (),
        parallelism: int = 1,
        max_parallelism: int = 128,
        backend: str = "hashmap",
        block_records: int = 65536,
        cache_limit: int | None = None,
        clock: ManualClock | None = None,
        parameters: Mapping[str, str] | None = None,
        compact: Compactions = lambda _: None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.printed = ""
        self.watermarks: list[int | None] = []  # the emitted watermarks; None for idle
        self._define = define
        self._input_types = [input_type or Types.PICKLED_BYTE_ARRAY() for input_type in input_types]
        self._tags = [tag.tag_id for tag in side_outputs]
        self._side_outputs, self._max_parallelism = side_outputs, max_parallelism
        self._backend, self._block_records, self._cache_limit = backend, block_records, cache_limit
        self._parameters, self._compact = dict(parameters or {}), compact
        self._job = f"harness{next(_numbers)}"
        self._local = "" if backend == "hashmap" else tempfile.mkdtemp(prefix="millstream-harness-")
        self._release = weakref.finalize(self, _release, self._job, self._local)
        _files[self._job] = {}
        self._engine = InlineEngine()
        self._generation = -1
        self._epoch = 0
        self._restored_from: Snapshot | None = None
        self._outputs: list[list[Record]] = [[] for _ in range(1 + len(self._tags))]
        self._metrics: dict[str, int] = {}
        self._ended = [False] * len(self._input_types)
        self._deploy(parallelism)
        shapes = self._describe_shapes()
        self._state = Restored(
            {shape.operator: (Lineage(),) * shape.parallelism for shape in shapes},
            {shape.operator: (SubtaskMemory(),) * shape.parallelism for shape in shapes},
        )

    @classmethod
    def of_spec(
        cls,
        spec: OperatorSpec,
        *,
        keys: Sequence[KeySelection] = (),
        input_types: Sequence[TypeInformation | None] = (None,),
        output_type: TypeInformation | None = None,
        **options: Any,
    ) -> OperatorHarness:
        """Create a harness of one operator.

        Args:
            spec: The description of the operator.
            keys: For a keyed operator, how the key of each input is selected.
            input_types: The types of the inputs.
            output_type: The type of the emitted records.
            options: Further arguments of `OperatorHarness`.

        """

        def define(*streams: DataStream) -> DataStream:
            env = streams[0].get_execution_environment()
            inputs = tuple(
                Input(stream._id, side, partitioner=Hash(keys[side]) if keys else None)
                for side, stream in enumerate(streams)
            )
            key_type = keys[0].key_type if keys else None
            emitted_type = output_type or Types.PICKLED_BYTE_ARRAY()
            return env._stream(env._program.add(type(spec).__name__, spec, emitted_type, inputs, key_type=key_type))

        return cls(define, input_types=input_types, **options)

    # ---------------------------------------------------------------------------------------------------- steps

    def process(self, value: Any, timestamp: int | None = None, side: int = 0) -> None:
        """Process one record of the input `side`, in an epoch of its own.

        Args:
            value: The record.
            timestamp: Its event-time timestamp; None for a record without one.
            side: The index of the input.

        """
        self.process_all([value], [timestamp], side)

    def process_all(self, values: Iterable[Any], timestamps: Iterable[int | None] | None = None, side: int = 0) -> None:
        """Process several records of the input `side` in one epoch.

        Args:
            values: The records.
            timestamps: One timestamp for each record; None for records without timestamps.
            side: The index of the input.

        Raises:
            HarnessMisused: The numbers of values and timestamps differ.

        """
        rows = tuple(values)
        times = (None,) * len(rows) if timestamps is None else tuple(timestamps)
        if len(times) != len(rows):
            msg = f"there are {len(rows)} values and {len(times)} timestamps"
            raise HarnessMisused(msg, hint="pass one timestamp for each value; None for a value without one")
        self.step({side: [Rows(rows, times)]})

    def watermark(self, watermark: int, side: int | None = None) -> None:
        """Send a watermark on the input `side`, or on all inputs.

        Args:
            watermark: The timestamp of the watermark.
            side: The index of the input; None for all.

        """
        self.step({index: [Watermark(watermark)] for index in self._list_sides(side)})

    def idle(self, side: int | None = None) -> None:
        """Mark the input `side`, or all inputs, as idle.

        Args:
            side: The index of the input; None for all.

        """
        self.step({index: [Watermark(None)] for index in self._list_sides(side)})

    def processing_time(self, now: int) -> None:
        """Move processing time to `now`, in milliseconds; timers that are due fire.

        Args:
            now: The new time; it must not go back.

        """
        self.clock.set(now)
        self.step({})

    def end_of_input(self, side: int | None = None) -> None:
        """End the input `side`, or all inputs: send the last watermark. Functions are closed when all inputs ended.

        Args:
            side: The index of the input; None for all.

        """
        sides = self._list_sides(side)
        for index in sides:
            self._ended[index] = True
        self.step({index: [Watermark(MAX_WATERMARK)] for index in sides}, last=all(self._ended))

    def _list_sides(self, side: int | None) -> list[int]:
        return list(range(len(self._input_types))) if side is None else [side]

    def step(self, work: Mapping[int, Sequence[Rows | Watermark]], *, last: bool = False) -> None:
        """Run one epoch over the given records and watermarks of each input. A failed epoch changes nothing.

        Args:
            work: Records and watermarks by the index of the input, each in order.
            last: Whether the input ends after them.

        """
        request = EpochRequest(
            epoch=self._epoch + 1,
            now=self.clock.now(),
            generation=self._generation,
            attempts=self._attempts,
            lineages=self._state.lineages,
            memory=self._state.memory,
            work={self._feeds[side]: (tuple(pieces),) for side, pieces in work.items()},
            compact=self._choose_compactions(),
            last=last,
        )
        result = self._engine.run_epoch(request)
        if result.failures:
            raise _create_failure(result.failures[0])
        self._accept(result)

    def _choose_compactions(self) -> dict[str, dict[int, Compaction]]:
        compactions: dict[str, dict[int, Compaction]] = {}
        for operator, lineages in self._state.lineages.items():
            for subtask, lineage in enumerate(lineages):
                since = 0 if lineage.restored else self._compact(lineage)
                if since is not None:
                    compactions.setdefault(operator, {})[subtask] = since
        return compactions

    def _accept(self, result: EpochResult) -> None:
        lineages = {name: list(parts) for name, parts in self._state.lineages.items()}
        memory = {name: list(parts) for name, parts in self._state.memory.items()}
        self._attempts = collect_attempts(result.reports)
        for report in result.reports:
            subtask = report.subtask
            for operator, written in report.states.items():
                lineages[operator][subtask] = lineages[operator][subtask].extend(*written)
            for operator, remembered in report.memory.items():
                memory[operator][subtask] = remembered
            for counts in report.metrics.values():
                for name, count in counts.items():
                    if isinstance(count, int):
                        self._metrics[name] = self._metrics.get(name, 0) + count
            self.printed += report.printed
            collected, watermarks = report.results.get(self._collector, ((), ()))
            for side, value, time in collected:
                self._outputs[side].append(Record(value, time))
            self.watermarks.extend(watermarks)
        self._state = Restored(
            {name: tuple(parts) for name, parts in lineages.items()},
            {name: tuple(parts) for name, parts in memory.items()},
        )
        self._epoch += 1
        self._restored_from = None

    # -------------------------------------------------------------------------------------------------- results

    @property
    def output(self) -> list[Record]:
        """The emitted records since the last `take_output`."""
        return list(self._outputs[0])

    def take_output(self) -> list[Record]:
        """Return and forget the emitted records."""
        records, self._outputs[0] = self._outputs[0], []
        return records

    def values(self) -> list[Any]:
        """Return and forget the emitted records, without their timestamps."""
        return [record.value for record in self.take_output()]

    def side_output(self, tag: OutputTag | str) -> list[Record]:
        """Return and forget the records of a side output.

        Args:
            tag: The tag of the side output, or its id.

        Raises:
            HarnessMisused: The harness was created without this side output.

        """
        name = tag if isinstance(tag, str) else tag.tag_id
        if name not in self._tags:
            msg = f"side output '{name}' is not collected"
            raise HarnessMisused(msg, hint="pass its tag in side_outputs")
        index = 1 + self._tags.index(name)
        records, self._outputs[index] = self._outputs[index], []
        return records

    def counter(self, name: str) -> int:
        """Return a counter, summed over all operators and subtasks.

        The name of a counter of your own begins with `user.` and its groups.

        Args:
            name: The name of the counter.

        """
        return self._metrics.get(name, 0)

    # ---------------------------------------------------------------------------------------- snapshots and state

    def snapshot(self) -> Snapshot:
        """Take a snapshot of the pipeline."""
        if self._restored_from is not None:
            return self._restored_from
        operators = tuple(
            OperatorSnapshot(
                node.operator,
                node.name,
                node.uid,
                planned.task.parallelism,
                planned.task.max_parallelism,
                self._state.lineages[node.operator],
                self._state.memory[node.operator],
                node.traits,
            )
            for planned in self._plan.vertices
            for node in planned.vertex.nodes
        )
        metadata = CheckpointMetadata(
            checkpoint=self._epoch,
            epoch=self._epoch,
            generation=self._generation,
            job_id=self._job,
            job_name="harness",
            timestamp=self.clock.now(),
            now=self.clock.now(),
            operators=operators,
        )
        files = {handle.name: _files[self._job][handle.name] for handle in metadata.handles}
        return Snapshot(metadata.to_bytes(), files)

    def restore(self, snapshot: Snapshot, parallelism: int | None = None) -> None:
        """Restore a snapshot of this harness or of another one of the same pipeline, with new function objects.

        Args:
            snapshot: The snapshot.
            parallelism: The number of subtasks; the current one by default.

        """
        metadata = CheckpointMetadata.from_bytes(snapshot.metadata)
        _files[self._job].update(snapshot.files)
        self._deploy(parallelism or self._parallelism)
        self._state = assign(metadata, self._describe_shapes(), foreign=metadata.job_id != self._job)
        self._epoch = metadata.epoch
        self.clock.set(max(self.clock.now(), metadata.now))
        self._restored_from = snapshot
        self._ended = [False] * len(self._input_types)

    def rescale(self, parallelism: int) -> None:
        """Change the number of subtasks, by a snapshot and a restore.

        Args:
            parallelism: The new number of subtasks.

        """
        self.restore(self.snapshot(), parallelism)

    def state(self, name: str) -> dict[Any, Any]:
        """Return the values of a state by key, over all subtasks; state of windows by (key, window).

        A list or a map is one value. With a time to live, each value comes with the time of its last write.

        Args:
            name: The name in the state descriptor.

        """
        values: dict[Any, Any] = {}
        prefixes = ("user", "user/window", "user/global", "user/trigger", "broadcast", "operator")
        names = {name, *(f"{prefix}/{name}" for prefix in prefixes)}
        for table, namespace, key, value in self._read_entries():
            if table in names:
                values[key if namespace is None else (key, namespace)] = value
        return values

    def timers(self) -> list[Timer]:
        """Return the registered timers, in the order of their times."""
        domains = {"timers/event": TimeDomain.EVENT_TIME, "timers/processing": TimeDomain.PROCESSING_TIME}
        registered = [
            Timer(domains[table], time, key, namespace)
            for table, namespace, key, times in self._read_entries()
            if table in domains
            for time in times
        ]
        return sorted(registered, key=lambda timer: (timer.time, str(timer.key), str(timer.namespace)))

    def _read_entries(self) -> Iterable[tuple[str, Any, Any, Any]]:
        """Yield every entry of every state table, read from the state files as a new worker reads them."""
        files = MemoryFiles(self._job)
        for shape in self._describe_shapes():
            for subtask, lineage in enumerate(self._state.lineages[shape.operator]):
                state = OperatorState(
                    range_of(subtask, shape.parallelism, shape.max_parallelism),
                    subtask,
                    shape.parallelism,
                    KeyGrouper(shape.max_parallelism),
                )
                state.advance(lineage, files.read)
                for name, table in state.tables.items():
                    for namespace in table.namespaces():
                        yield from ((name, namespace, key, value) for key, value in table.scan(namespace))

    # ------------------------------------------------------------------------------------------------- deployment

    def _deploy(self, parallelism: int) -> None:
        self._parallelism = parallelism
        self._attempts = collect_attempts(())
        self._generation += 1
        self._plan = self._compile(parallelism)
        by_name = {node.name: node.id for planned in self._plan.vertices for node in planned.task.operators}
        self._feeds = [by_name[f"Input {side}"] for side in range(len(self._input_types))]
        self._collector = by_name["Output"]
        self._engine.deploy(
            Deployment(
                id=f"{self._job}/{self._generation}",
                plan=self._plan,
                files=MemoryFiles(self._job),
                local=self._local,
                backend=self._backend,
                parameters=self._parameters,
                block_records=self._block_records,
                cache_limit=self._cache_limit,
            )
        )

    def _compile(self, parallelism: int) -> ExecutionPlan:
        env = StreamExecutionEnvironment()
        env.set_parallelism(parallelism).set_max_parallelism(self._max_parallelism)
        program = env._program
        alone: dict[str, Any] = {"parallelism": 1, "chaining": Chaining.NEVER}
        feeds = [
            env._stream(program.add(f"Input {side}", FeedSpec(input_type), input_type, uid=f"input-{side}", **alone))
            for side, input_type in enumerate(self._input_types)
        ]
        result = self._define(*feeds)
        streams = [result, *(result.get_side_output(tag) for tag in self._side_outputs)]
        inputs = tuple(
            Input(edge.upstream, side, edge.tag, edge.partitioner)
            for side, stream in enumerate(streams)
            for edge in stream._inputs
        )
        program.add("Output", CollectSpec(), result.get_type(), inputs, uid="output", **alone)
        return execution_plan(job_graph(env._graph(), "harness"))

    def _describe_shapes(self) -> list[OperatorShape]:
        return [
            OperatorShape(node.id, node.name, planned.task.parallelism, planned.task.max_parallelism)
            for planned in self._plan.vertices
            for node in planned.task.operators
        ]

    def close(self) -> None:
        """Delete the state files."""
        self._release()

    def __enter__(self) -> OperatorHarness:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _release(job: str, local: str) -> None:
    _files.pop(job, None)
    if local:
        shutil.rmtree(Path(local), ignore_errors=True)


def _create_failure(failure: TaskFailure) -> MillstreamError:
    if failure.domain == "user":
        return UserFunctionFailed.from_failure(failure)
    text = f"{failure.problem} (in {failure.vertex})"
    return ExternalError(text) if failure.domain == "external" else InternalError(f"{text}\n{failure.trace}")
