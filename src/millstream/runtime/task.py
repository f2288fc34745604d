"""One subtask of one vertex in one epoch: restore the state, process, fire timers, snapshot, report.

Promises: a task is a function of its request, the previous state and its blocks (law 2); its only effects are a state
file with the name of this attempt and the blocks it yields, the last of which is the report that names the file (law
4). The report sums up the blocks that were sent and those that were read, with the attempts that sent them. User
functions are kept from epoch to epoch only after an attempt that was accepted; else they are created again, as after a
restart.
Does not know: Spark, other subtasks, checkpoints."""

from __future__ import annotations

import contextlib
import time
import traceback
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from millstream.errors import ExternalError, UserError
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.job.accumulators import Accumulator, merge_accumulators
from millstream.runtime import block as blocks
from millstream.runtime.batch import Batch
from millstream.runtime.block import BlockKind
from millstream.runtime.block_sums import SumOfBlocks, sum_blocks
from millstream.runtime.captured_output import CapturedOutput
from millstream.runtime.checkpointed import Functions
from millstream.runtime.exchange import Exchange
from millstream.runtime.hot_keys import KeySampler
from millstream.runtime.key_selectors import key_selectors
from millstream.runtime.loops import LoopWork
from millstream.runtime.memory import MemoryPart, OperatorMemory, SubtaskMemory
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.partitioners import Hash, Partitioner, Router
from millstream.runtime.report import TaskFailure, TaskReport, pack_failure, pack_report
from millstream.runtime.rowwise import UserFunctionFailed
from millstream.runtime.stack_samples import Sampling, StackSampler
from millstream.runtime.watermarks import CombinedWatermark, SentWatermarks, channel_watermarks
from millstream.state.backend import OperatorState
from millstream.state.compaction import Compaction
from millstream.state.deltas import IncompatibleState, TableSchema
from millstream.state.handles import Chain, Lineage
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.state.snapshot import StateFileDamaged, StateFiles, write_snapshot
from millstream.state.store import OpenStore
from millstream.types.factory import TypeInformation


@dataclass(frozen=True)
class OperatorNode:
    """One operator of a chain."""

    id: str
    name: str
    spec: OperatorSpec
    output_type: TypeInformation
    key_type: TypeInformation | None = None
    side_types: Mapping[str, TypeInformation] = field(default_factory=dict)


@dataclass(frozen=True)
class ChainedEdge:
    """Operator `source` emits its (side) output directly to operator `target`; both are indexes in the chain."""

    source: int
    target: int
    tag: str | None = None


@dataclass(frozen=True)
class OutEdge:
    """An exchange that leaves this vertex."""

    edge: int
    source: int
    partitioner: Partitioner
    targets: int
    tag: str | None = None


@dataclass(frozen=True)
class InEdge:
    """An exchange that arrives at the head of this vertex."""

    edge: int
    side: int
    record_type: TypeInformation
    upstream: int
    partitioner: Partitioner

    def channels(self, subtask: int, parallelism: int) -> list[int]:
        """Return the upstream subtasks that reach `subtask`; it waits for their watermarks."""
        routers = (Router(self.partitioner, "", up, self.upstream, parallelism) for up in range(self.upstream))
        return [up for up, router in enumerate(routers) if subtask in router.reachable()]


@dataclass(frozen=True)
class TaskSpec:
    """A vertex as the runtime needs it: operators in the order of the chain, its edges, its parallelism."""

    vertex: str
    name: str
    parallelism: int
    max_parallelism: int
    operators: tuple[OperatorNode, ...]
    chained: tuple[ChainedEdge, ...] = ()
    inputs: tuple[InEdge, ...] = ()
    outputs: tuple[OutEdge, ...] = ()


@dataclass(frozen=True)
class TaskRequest:
    """What one subtask does in one epoch."""

    epoch: int
    now: int
    attempt: str
    recovered: int = 0
    previous: bytes = b""  # the last accepted attempt of this subtask; empty if there is none since deployment
    restarts: int = 0
    lineages: Mapping[str, Lineage] = field(default_factory=dict)
    memory: Mapping[str, SubtaskMemory] = field(default_factory=dict)
    work: Mapping[str, Any] = field(default_factory=dict)
    compact: Mapping[str, Compaction] = field(default_factory=dict)
    last: bool = False
    sampling: Sampling | None = None
    channels: Mapping[int, SentWatermarks] = field(default_factory=dict)  # by input edge, unless it was just restored


@dataclass(frozen=True)
class TaskEnvironment:
    """What the worker offers to a task."""

    files: StateFiles
    open_store: Callable[[str, int], OpenStore | None]
    job: str = ""
    storage: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    block_records: int = 65536
    cache_limit: int | None = None
    cached_files: Mapping[str, str] = field(default_factory=dict)
    compressed_state: bool = False
    batch: bool = False
    object_reuse: bool = False
    run_bytes: int = 64 << 20


@dataclass
class RoundRobinPositions(MemoryPart):
    """Where the round-robin partitioners of a subtask's exchanges continue, by edge. After a change of parallelism they
    begin again."""

    part_name: ClassVar[str] = "round_robin"
    unversioned_keys: ClassVar[Mapping[str, str]] = {"positions": "positions"}

    positions: dict[str, int] = field(default_factory=dict)


class _ChainOutput:
    """The output of one operator: chained operators first, then exchanges. A muted one emits no watermarks.

    Records that several chained operators or exchanges receive are copied for each operator but the last reader, as its
    function may change them; with `object_reuse` they are not."""

    def __init__(self, *, object_reuse: bool) -> None:
        self._object_reuse = object_reuse
        self.operators: list[tuple[str | None, Operator]] = []
        self.exchanges: list[tuple[str | None, Exchange]] = []
        self._readers: dict[str | None, tuple[list[Operator], list[Exchange]]] = {}  # by side output
        self.emitted = 0
        self.emitted_watermark: int | None = MIN_WATERMARK
        self.muted = False

    def emit(self, batch: Batch) -> None:
        if not len(batch):
            return
        self.emitted += len(batch)
        self._send(None, batch)

    def emit_side(self, tag: str, batch: Batch) -> None:
        self._send(tag, batch)

    def _send(self, tag: str | None, batch: Batch) -> None:
        operators, exchanges = self._readers.get(tag) or self._find_readers(tag)
        readers = len(operators) + len(exchanges)
        for index, operator in enumerate(operators, start=1):
            operator.on_batch(batch if index == readers or self._object_reuse else batch.copy(), 0)
        for exchange in exchanges:
            exchange.send(batch)

    def disconnect(self) -> None:
        """Remove all readers, because the chain is built again."""
        self.operators, self.exchanges, self._readers = [], [], {}

    def _find_readers(self, tag: str | None) -> tuple[list[Operator], list[Exchange]]:
        operators = [operator for output_tag, operator in self.operators if output_tag == tag]
        exchanges = [exchange for output_tag, exchange in self.exchanges if output_tag == tag]
        self._readers[tag] = operators, exchanges
        return operators, exchanges

    def emit_watermark(self, watermark: int | None) -> None:
        if self.muted:
            return
        before = self.emitted_watermark  # of a channel, too, the watermark never goes back
        self.emitted_watermark = watermark if watermark is None or before is None else max(watermark, before)
        for _, operator in self.operators:
            if watermark is None:
                operator.on_idle()
            else:
                operator.on_watermark(watermark)
        self.resend_watermark()

    def resend_watermark(self) -> None:
        """Send the last watermark to all downstream subtasks."""
        for _, exchange in self.exchanges:
            exchange.watermark(self.emitted_watermark)


class Task:
    """A subtask that a worker keeps across epochs; another worker can take it over between two epochs."""

    def __init__(
        self,
        spec: TaskSpec,
        subtask: int,
        environment: TaskEnvironment,
        copy_spec: Callable[[], TaskSpec] | None = None,
    ) -> None:
        """`copy_spec` returns a copy of the spec whose functions have not been called."""
        self.spec = spec
        self.subtask = subtask
        self.environment = environment
        self.attempt = blocks.NO_ATTEMPT
        self.outbox: list[tuple[int, bytes]] = []
        self._copy_spec = copy_spec
        self._completed: bytes | None = b""  # the last attempt; None if it failed, b"" before the first
        self._sent: dict[int, dict[int, int]] = {}
        self._read: dict[tuple[int, int, bytes], int] = {}
        self._bytes_in = self._bytes_out = 0
        self._key_sampler = KeySampler(spec.operators[0].name)
        self._outputs = [_ChainOutput(object_reuse=environment.object_reuse) for _ in spec.operators]
        self._contexts: list[OperatorContext] = []
        grouper = KeyGrouper(spec.max_parallelism)
        key_range = range_of(subtask, spec.parallelism, spec.max_parallelism)
        for node, output in zip(spec.operators, self._outputs, strict=True):
            state = OperatorState(
                key_range,
                subtask,
                spec.parallelism,
                grouper,
                node.key_type,
                environment.open_store(node.id, subtask),
                environment.cache_limit,
            )
            state.compressed = environment.compressed_state
            state.operator = node.name
            context = OperatorContext(
                operator=node.id,
                name=node.name,
                subtask=subtask,
                parallelism=spec.parallelism,
                max_parallelism=spec.max_parallelism,
                state=state,
                out=output,
                output_type=node.output_type,
                side_types=node.side_types,
                parameters=environment.parameters,
                cached_files=environment.cached_files,
                job=environment.job,
                storage=environment.storage,
                block_records=environment.block_records,
                batch=environment.batch,
                object_reuse=environment.object_reuse,
                files=environment.files,
            )
            self._contexts.append(context)
        self._channels = [(edge.edge, up) for edge in spec.inputs for up in edge.channels(subtask, spec.parallelism)]
        self._build(spec)

    def _build(self, spec: TaskSpec) -> None:
        """Create the operators of the chain and its exchanges, on the existing state."""
        self.spec = spec
        self._opened = False
        self._operators = [
            node.spec.build(context) for node, context in zip(spec.operators, self._contexts, strict=True)
        ]
        for output in self._outputs:
            output.disconnect()
        for edge in spec.chained:
            self._outputs[edge.source].operators.append((edge.tag, self._operators[edge.target]))
        self._exchanges: dict[int, Any] = {}
        for out in spec.outputs:
            exchange = self._exchanges[out.edge] = self._exchange(out)
            self._outputs[out.source].exchanges.append((out.tag, exchange))
        self._selectors = key_selectors(
            [
                *((node.spec, context) for node, context in zip(spec.operators, self._contexts, strict=True)),
                *((edge.partitioner, self._contexts[0]) for edge in spec.inputs),
                *((edge.partitioner, self._contexts[edge.source]) for edge in spec.outputs),
            ]
        )

    def _rebuild(self) -> None:
        """Create the functions again: they have seen an attempt that was not accepted, or missed one that was."""
        before, selectors, opened = self._operators, self._selectors, self._opened
        self._build(self.spec if self._copy_spec is None else self._copy_spec())
        if opened:
            for operator, old in zip(self._operators, before, strict=True):
                operator.transfer_from(old)
            _close(before, selectors)
        for old in before:
            with contextlib.suppress(Exception):
                old.dispose()

    def _exchange(self, edge: OutEdge) -> Any:
        """Create the sending end of an edge."""
        return Exchange(edge, self)

    def send(self, edge: int, target: int, *block: bytes) -> None:
        """Put a block into the outbox."""
        self.outbox.append((target, *block))  # type: ignore[arg-type]
        targets = self._sent.setdefault(edge, {})
        targets[target] = targets.get(target, 0) + 1
        self._bytes_out += len(block[-1])

    def count_read(self, header: blocks.Header, size: int) -> None:
        """Count a block that was read, for the report."""
        channel = header.edge, header.upstream, header.attempt
        self._read[channel] = self._read.get(channel, 0) + 1
        self._bytes_in += size

    def run(self, request: TaskRequest, inbox: list[bytes]) -> Iterator[tuple[int, bytes]]:
        """Process the blocks of one epoch; yields (target slot, block), and finally the report."""
        started = time.perf_counter()
        printed = CapturedOutput()
        sampler = None if request.sampling is None else StackSampler(request.sampling, Task.run.__code__)
        if sampler is not None:
            sampler.start()
        try:
            with contextlib.redirect_stdout(printed):
                self._begin(request)
                for _ in self._operators[0].pump():
                    yield from self._drain()
                for _ in self._receive(inbox, request.channels):
                    yield from self._drain()
                self._end(request)
                report = self._report(request, printed, started)
                if sampler is not None:
                    report = replace(report, stacks=sampler.stop())
                self._completed = self.attempt
        except BaseException as problem:
            if sampler is not None:
                sampler.stop()
            for context, output in zip(self._contexts, self._outputs, strict=True):
                context.state.abandon()
                context.metrics.forget()
                output.emitted = 0
            for operator in self._operators:
                with contextlib.suppress(Exception):  # the first failure is the one to report
                    operator.abandon()
            if self._opened:
                self._opened = False
                _close(self._operators, self._selectors)
            self.outbox.clear()
            if not isinstance(problem, Exception):
                raise
            yield self.subtask, pack_failure(self.subtask, self._failure(problem))
            return
        yield from self._drain()
        yield self.subtask, pack_report(report)

    def _failure(self, problem: Exception) -> TaskFailure:
        """Classify a failure by its domain, with the round if the subtask is part of an iteration."""
        rounds = (work.location for context in self._contexts if isinstance(work := context.work, LoopWork))
        return replace(self._classify(problem), round=next(rounds, ""))

    def _classify(self, problem: Exception) -> TaskFailure:
        vertex = f"{self.spec.name} ({self.subtask + 1}/{self.spec.parallelism})"
        if isinstance(problem, MemoryError) or isinstance(problem.__cause__, MemoryError):
            return TaskFailure("memory", vertex, "out of memory", operator=self.spec.name)
        if isinstance(problem, UserFunctionFailed):
            return problem.to_failure(vertex)
        if isinstance(problem, IncompatibleState):
            return TaskFailure("refused", vertex, problem.message, hint=problem.hint)
        if isinstance(problem, StateFileDamaged):
            return TaskFailure("damage", vertex, problem.problem, file=problem.file, missing=problem.missing)
        domain = "internal"
        if isinstance(problem, UserError):
            domain = "user"
        elif isinstance(problem, ExternalError | OSError):
            domain = "external"
        trace = "" if domain != "internal" else "".join(traceback.format_exception(problem))
        return TaskFailure(domain, vertex, str(problem) or repr(problem), operator=self.spec.name, trace=trace)

    def _begin(self, request: TaskRequest) -> None:
        if self._completed not in (b"", request.previous):
            self._rebuild()
        self._completed = None
        self.attempt = blocks.attempt_token(request.attempt)
        self._sent, self._read = {}, {}
        self._bytes_in = self._bytes_out = 0
        self._key_sampler.begin(request.now)
        for context in self._contexts:
            context.scope.now = request.now
            context.epoch, context.attempt, context.restarts = request.epoch, request.attempt, request.restarts
            context.recovered = request.recovered
            context.memory = OperatorMemory(request.memory.get(context.operator))
            context.work, context.result = request.work.get(context.operator), None
            context.draws.begin_epoch(
                self.environment.job, request.epoch, request.now, context.operator, self.subtask, context.memory
            )
        positions = self._contexts[0].memory.part(RoundRobinPositions).positions
        for edge, exchange in self._exchanges.items():
            exchange.begin(request.epoch, positions.get(str(edge), 0))
        if not self._opened:
            for operator in self._operators:
                operator.open()
            for selector in self._selectors:
                selector.open()
            self._opened = True
        for context in self._contexts:
            lineage = request.lineages.get(context.operator, Lineage())
            context.state.now = request.now
            context.state.advance(lineage, self.environment.files.read)
        for context, output in zip(self._contexts, self._outputs, strict=True):
            output.emitted_watermark = context.memory.emitted_watermark
            if context.memory.restored and output.emitted_watermark != MIN_WATERMARK:
                output.resend_watermark()  # restored channels do not remember the last watermark
            context.memory.restored = False
        for operator in self._operators:
            operator.initialize()
        for operator in reversed(self._operators):  # timers that fire here emit to the operators after them
            operator.begin_epoch()

    def _receive(self, inbox: Any, sent: Mapping[int, SentWatermarks]) -> Iterator[None]:
        """Process the blocks of the inbox; yields after every block. `sent` is as of the last epoch."""
        if not inbox:
            return
        watermark = self._operators[0].watermark
        combined = CombinedWatermark(channel_watermarks(self._channels, sent, watermark), watermark)
        for header, data in _sort_blocks(inbox):
            self.count_read(header, len(data))
            self._take(header, data, combined)
            yield

    def _take(self, header: blocks.Header, data: bytes, combined: CombinedWatermark) -> None:
        head = self._operators[0]
        edge = next(edge for edge in self.spec.inputs if edge.edge == header.edge)
        if header.kind is BlockKind.WATERMARK:
            was_idle = combined.idle
            if combined.update((header.edge, header.upstream), blocks.unpack_watermark(data)):
                if combined.idle:
                    head.on_idle()
                elif combined.watermark > head.watermark:
                    head.on_watermark(combined.watermark)
                elif was_idle:
                    head.on_active()
            return
        batch = blocks.unpack_batch(data, edge.record_type)
        self._contexts[0].metrics.count("records_in", len(batch))
        if isinstance(edge.partitioner, Hash):
            self._key_sampler.add(batch, edge.partitioner.key)
        head.on_batch(batch, edge.side)

    def _end(self, request: TaskRequest) -> None:
        for operator in self._operators:
            operator.end_round()
        for operator in self._operators:
            if operator.watermark == MAX_WATERMARK and not operator.context.memory.ended:
                operator.on_end()
                operator.context.memory.ended = True
        for operator in self._operators:
            operator.end_epoch()
        for operator in self._operators:
            operator.snapshot()
        for exchange in self._exchanges.values():
            exchange.flush()
        if request.last:
            for operator in self._operators:
                operator.close()
            for selector in self._selectors:
                selector.close()
            self._opened = False

    def _report(self, request: TaskRequest, printed: CapturedOutput, started: float) -> TaskReport:
        states: dict[str, Chain] = {}
        memory: dict[str, SubtaskMemory] = {}
        results: dict[str, Any] = {}
        metrics: dict[str, dict[str, Any]] = {}
        accumulators: dict[str, Accumulator[Any, Any]] = {}
        positions = {str(edge): x.router.position for edge, x in self._exchanges.items() if x.router.position}
        if positions:
            self._contexts[0].memory.part(RoundRobinPositions).positions = positions
        for context, output in zip(self._contexts, self._outputs, strict=True):
            context.memory.emitted_watermark = output.emitted_watermark
            chain = self._save(context, request)
            if chain:
                states[context.operator] = chain
            if context.result is not None:
                results[context.operator] = context.result
            memory[context.operator] = context.memory.snapshot()
        samples: dict[str, Any] = {}
        timers = [due for operator in self._operators if (due := operator.next_timer()) is not None]
        for context, output in zip(self._contexts, self._outputs, strict=True):
            context.metrics.count("records_out", output.emitted)
            output.emitted = 0
            metrics[context.operator] = context.metrics.take()
            if new_samples := context.metrics.take_samples():
                samples[context.operator] = new_samples
            accumulators = merge_accumulators(accumulators, context.metrics.take_accumulators())
        return TaskReport(
            vertex=self.spec.vertex,
            subtask=self.subtask,
            attempt=self.attempt,
            states=states,
            memory=memory,
            results=results,
            samples=samples,
            keys=self._key_sampler.take(),
            timer=min(timers, default=None),
            metrics=metrics,
            accumulators=accumulators,
            printed=printed.text(),
            watermark=self._current_watermark(),
            busy=time.perf_counter() - started,
            sent=self._sum_sent(),
            read=self._sum_read(),
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
        )

    def _sum_sent(self) -> dict[int, SumOfBlocks]:
        """Sum up the blocks that were sent, by edge."""
        return {
            edge: sum_blocks((edge, self.subtask, target, self.attempt, count) for target, count in counts.items())
            for edge, counts in self._sent.items()
        }

    def _sum_read(self) -> dict[int, SumOfBlocks]:
        """Sum up the blocks that were read, by edge."""
        by_edge: dict[int, list[tuple[int, int, int, bytes, int]]] = {}
        for (edge, upstream, attempt), count in self._read.items():
            by_edge.setdefault(edge, []).append((edge, upstream, self.subtask, attempt, count))
        return {edge: sum_blocks(channels) for edge, channels in by_edge.items()}

    def _current_watermark(self) -> int:
        """Return the watermark of the chain: an operator behind the source may create it, as for a table."""
        emitted = [output.emitted_watermark for output in self._outputs if output.emitted_watermark is not None]
        return max([operator.watermark for operator in self._operators] + emitted)

    def _save(self, context: OperatorContext, request: TaskRequest) -> Chain:
        lineage = request.lineages.get(context.operator, Lineage())
        compaction = request.compact.get(context.operator)

        def name(suffix: str) -> str:
            return f"{context.operator}-{self.subtask}{suffix}-{request.epoch}-{request.attempt}"

        return write_snapshot(context.state, lineage, compaction, self.environment.files, request.epoch, name)

    def _drain(self) -> Iterator[tuple[int, bytes]]:
        outbox, self.outbox = self.outbox, []
        yield from outbox

    def declared_tables(self, skip: Container[str] = ()) -> dict[str, dict[str, TableSchema]]:
        """Return the state tables that each operator declares, by its id. Its functions are opened and closed for this.

        Operators in `skip` are not opened."""
        opened = [operator for operator in self._operators if operator.context.operator not in skip]
        for operator in opened:
            operator.open()
            operator.initialize()
        tables = {
            context.operator: {name: table.schema for name, table in context.state.tables.items()}
            for context in self._contexts
        }
        for operator in opened:
            operator.close()
        return tables

    def close(self) -> None:
        """Dispose of the operators and close their state."""
        for operator in self._operators:
            operator.dispose()
        for context in self._contexts:
            context.state.close()


def _close(operators: list[Operator], selectors: list[Functions]) -> None:
    """Close functions that will not be called again; their failures are ignored."""
    for close in (*(operator.close for operator in operators), *(selector.close for selector in selectors)):
        with contextlib.suppress(Exception):
            close()


def _sort_blocks(inbox: list[bytes]) -> list[tuple[blocks.Header, bytes]]:
    """Return the blocks in the order that every attempt sees: by sequence number, then edge, then channel."""
    pairs = [(blocks.header(data), data) for data in inbox]
    pairs.sort(key=lambda pair: (pair[0].sequence, pair[0].edge, pair[0].upstream))
    return pairs
