"""Drives an operator, or a small pipeline, by hand: records, watermarks and time in, results out; no JVM, no waiting.

Promises: what is tested is what runs: each step is one epoch of the real tasks, with blocks as bytes, state files and
reports between them; a snapshot goes through the checkpoint's own format and can be restored at any parallelism.
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
from millstream.testing.ends import CatchSpec, FeedSpec, Mark, Rows
from millstream.testing.inline_engine import InlineEngine
from millstream.types.factory import TypeInformation, Types

_numbers = itertools.count(1)
_files: dict[str, dict[str, bytes]] = {}

Compactions = Callable[[Lineage], Compaction | None]


class HarnessMisused(UserError):
    """A harness was asked for something that cannot be at this point."""


class Record(NamedTuple):
    """A result with its timestamp, None where it has none."""

    value: Any
    timestamp: int | None


class Timer(NamedTuple):
    """A timer that waits; `namespace` is its window, None outside of windows."""

    domain: TimeDomain
    time: int
    key: Any
    namespace: Any


@dataclass(frozen=True)
class Snapshot:
    """All a pipeline needs to go on: the checkpoint's metadata and the state files it names."""

    metadata: bytes
    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class MemoryFiles:
    """State files in a dictionary of this process; a copy that went through pickle has the same files."""

    home: str

    def write(self, name: str, data: bytes) -> Handle:
        """Store a file under a name that no other harness uses."""
        full = f"{self.home}/{name}"
        _files[self.home][full] = data
        return Handle(full, len(data), hashlib.sha256(data).hexdigest(), 0)

    def read(self, handle: Handle) -> bytes:
        """The content of a file."""
        data = _files[self.home][handle.name]
        if hashlib.sha256(data).hexdigest() != handle.sha256:
            msg = f"state file '{handle.name}' is not what was written"
            raise InternalError(msg)
        return data


class OperatorHarness:
    """A pipeline whose inputs are the calls of `process`, `watermark` and `processing_time`.

    `define` builds it on the public API from as many streams as there are `input_types` (one, or two for connected
    streams). Use it in a `with` statement, or call `close`."""

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
        self.marks: list[int | None] = []
        self._define, self._kinds = define, [kind or Types.PICKLED_BYTE_ARRAY() for kind in input_types]
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
        self._ended = [False] * len(self._kinds)
        self._deploy(parallelism)
        shapes = self._shapes()
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
        """A harness of one operator from its description; `keys` has one selection per input when it is keyed."""

        def define(*streams: DataStream) -> DataStream:
            env = streams[0].get_execution_environment()
            inputs = tuple(
                Input(stream._id, side, partitioner=Hash(keys[side]) if keys else None)
                for side, stream in enumerate(streams)
            )
            key_type = keys[0].key_type if keys else None
            kind = output_type or Types.PICKLED_BYTE_ARRAY()
            return env._stream(env._program.add(type(spec).__name__, spec, kind, inputs, key_type=key_type))

        return cls(define, input_types=input_types, **options)

    # ---------------------------------------------------------------------------------------------------- steps

    def process(self, value: Any, timestamp: int | None = None, side: int = 0) -> None:
        """One record into input `side`."""
        self.process_all([value], [timestamp], side)

    def process_all(self, values: Iterable[Any], timestamps: Iterable[int | None] | None = None, side: int = 0) -> None:
        """Several records into input `side`, in one epoch."""
        given = tuple(values)
        times = (None,) * len(given) if timestamps is None else tuple(timestamps)
        if len(times) != len(given):
            msg = f"there are {len(given)} values and {len(times)} timestamps"
            raise HarnessMisused(msg)
        self.step({side: [Rows(given, times)]})

    def watermark(self, watermark: int, side: int | None = None) -> None:
        """Event time moves on, on one input or on all."""
        self.step({each: [Mark(watermark)] for each in self._sides(side)})

    def idle(self, side: int | None = None) -> None:
        """An input, or all, have nothing to say for now."""
        self.step({each: [Mark(None)] for each in self._sides(side)})

    def processing_time(self, now: int) -> None:
        """Processing time moves on; timers that are due fire."""
        self.clock.set(now)
        self.step({})

    def end_of_input(self, side: int | None = None) -> None:
        """The last watermark, on one input or on all; when all have ended, functions are closed."""
        sides = self._sides(side)
        for each in sides:
            self._ended[each] = True
        self.step({each: [Mark(MAX_WATERMARK)] for each in sides}, last=all(self._ended))

    def _sides(self, side: int | None) -> list[int]:
        return list(range(len(self._kinds))) if side is None else [side]

    def step(self, work: Mapping[int, Sequence[Rows | Mark]], *, last: bool = False) -> None:
        """One epoch over pieces of work by input. When it fails, nothing has happened."""
        request = EpochRequest(
            epoch=self._epoch + 1,
            now=self.clock.now(),
            generation=self._generation,
            attempts=self._attempts,
            lineages=self._state.lineages,
            memory=self._state.memory,
            work={self._feeds[side]: (tuple(pieces),) for side, pieces in work.items()},
            compact=self._compactions(),
            last=last,
        )
        result = self._engine.run_epoch(request)
        if result.failures:
            raise _failure(result.failures[0])
        self._accept(result)

    def _compactions(self) -> dict[str, dict[int, Compaction]]:
        wanted: dict[str, dict[int, Compaction]] = {}
        for operator, lineages in self._state.lineages.items():
            for subtask, lineage in enumerate(lineages):
                since = 0 if lineage.restored else self._compact(lineage)
                if since is not None:
                    wanted.setdefault(operator, {})[subtask] = since
        return wanted

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
            caught, marks = report.results.get(self._catch, ((), ()))
            for side, value, time in caught:
                self._outputs[side].append(Record(value, time))
            self.marks.extend(marks)
        self._state = Restored(
            {name: tuple(parts) for name, parts in lineages.items()},
            {name: tuple(parts) for name, parts in memory.items()},
        )
        self._epoch += 1
        self._restored_from = None

    # -------------------------------------------------------------------------------------------------- results

    @property
    def output(self) -> list[Record]:
        """The results since the last `take_output`."""
        return list(self._outputs[0])

    def take_output(self) -> list[Record]:
        """The results since the last call."""
        taken, self._outputs[0] = self._outputs[0], []
        return taken

    def values(self) -> list[Any]:
        """The results since the last call, without their timestamps."""
        return [record.value for record in self.take_output()]

    def side_output(self, tag: OutputTag | str) -> list[Record]:
        """What went to a side output since the last call for it."""
        name = tag if isinstance(tag, str) else tag.tag_id
        if name not in self._tags:
            msg = f"side output '{name}' is not caught"
            raise HarnessMisused(msg, hint="name it in side_outputs")
        index = 1 + self._tags.index(name)
        taken, self._outputs[index] = self._outputs[index], []
        return taken

    def counter(self, name: str) -> int:
        """A counter, over all operators and subtasks: `user.` and its groups before the names of your own."""
        return self._metrics.get(name, 0)

    # ---------------------------------------------------------------------------------------- snapshots and state

    def snapshot(self) -> Snapshot:
        """The pipeline as it is between two steps."""
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
        """Go on from a snapshot, of this harness or of another one of the same pipeline, with new function objects."""
        metadata = CheckpointMetadata.from_bytes(snapshot.metadata)
        _files[self._job].update(snapshot.files)
        self._deploy(parallelism or self._parallelism)
        self._state = assign(metadata, self._shapes(), foreign=metadata.job_id != self._job)
        self._epoch = metadata.epoch
        self.clock.set(max(self.clock.now(), metadata.now))
        self._restored_from = snapshot
        self._ended = [False] * len(self._kinds)

    def rescale(self, parallelism: int) -> None:
        """Go on with another number of subtasks, through a snapshot."""
        self.restore(self.snapshot(), parallelism)

    def state(self, name: str) -> dict[Any, Any]:
        """The state of that name by key, over all subtasks; state of windows by (key, window).

        A list or a map is one value; with a time to live, each value comes with the time it was last written."""
        found: dict[Any, Any] = {}
        places = ("user", "user/window", "user/global", "user/trigger", "broadcast", "operator")
        names = {name, *(f"{place}/{name}" for place in places)}
        for table, namespace, key, value in self._entries():
            if table in names:
                found[key if namespace is None else (key, namespace)] = value
        return found

    def timers(self) -> list[Timer]:
        """The timers that wait, in the order of their times."""
        domains = {"timers/event": TimeDomain.EVENT_TIME, "timers/processing": TimeDomain.PROCESSING_TIME}
        waiting = [
            Timer(domains[table], time, key, namespace)
            for table, namespace, key, times in self._entries()
            if table in domains
            for time in times
        ]
        return sorted(waiting, key=lambda timer: (timer.time, str(timer.key), str(timer.namespace)))

    def _entries(self) -> Iterable[tuple[str, Any, Any, Any]]:
        """Every entry of every table, as a worker that starts now would read it."""
        files = MemoryFiles(self._job)
        for shape in self._shapes():
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
        self._feeds = [by_name[f"Input {side}"] for side in range(len(self._kinds))]
        self._catch = by_name["Output"]
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
            env._stream(program.add(f"Input {side}", FeedSpec(kind), kind, uid=f"input-{side}", **alone))
            for side, kind in enumerate(self._kinds)
        ]
        result = self._define(*feeds)
        streams = [result, *(result.get_side_output(tag) for tag in self._side_outputs)]
        inputs = tuple(
            Input(each.upstream, side, each.tag, each.partitioner)
            for side, stream in enumerate(streams)
            for each in stream._inputs
        )
        program.add("Output", CatchSpec(), result.get_type(), inputs, uid="output", **alone)
        return execution_plan(job_graph(env._graph(), "harness"))

    def _shapes(self) -> list[OperatorShape]:
        return [
            OperatorShape(node.id, node.name, planned.task.parallelism, planned.task.max_parallelism)
            for planned in self._plan.vertices
            for node in planned.task.operators
        ]

    def close(self) -> None:
        """Let go of state files."""
        self._release()

    def __enter__(self) -> OperatorHarness:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _release(job: str, local: str) -> None:
    _files.pop(job, None)
    if local:
        shutil.rmtree(Path(local), ignore_errors=True)


def _failure(failure: TaskFailure) -> MillstreamError:
    if failure.domain == "user":
        return UserFunctionFailed.from_failure(failure)
    text = f"{failure.problem} (in {failure.vertex})"
    return ExternalError(text) if failure.domain == "external" else InternalError(f"{text}\n{failure.trace}")
