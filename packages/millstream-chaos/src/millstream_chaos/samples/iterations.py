"""Small programs with iterations and graphs for simulations, whose output depends on their input only.

Promises: the programs are bounded; a round of a bounded iteration gives the same records in every run.
Does not know: engines, faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.functions import (
    CheckpointedFunction,
    DeltaFunction,
    IterationContext,
    IterationListener,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from millstream.gelly import Graph
from millstream.iteration import (
    Criterion,
    DataStreamList,
    IterationBodyResult,
    IterationConfig,
    Iterations,
    ParameterFunction,
    ReplayableDataStreamList,
    Termination,
    WorkerContext,
    for_each_round,
    iterate,
    iterate_delta,
    iterate_parameters,
)
from millstream.state_descriptors.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from millstream.types.factory import Types
from millstream_chaos.samples import sample_input
from millstream_chaos.samples.splits_source import SplitsSource

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
_VERTICES = 23


def _numbers(env: Any, count: int = 24) -> DataStream[Any]:
    source = SplitsSource(sample_input.numbers(count), Types.LONG())
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")  # type: ignore[no-any-return]


class _Halve(KeyedProcessFunction[Any, Any, Any]):
    """Counts the visits of a number, and halves it."""

    def open(self, runtime_context: Any) -> None:
        self._visits = runtime_context.get_state(ValueStateDescriptor("visits", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._visits.update((self._visits.value() or 0) + 1)
        yield value[0], value[1] // 2 + value[0] % 3


def bulk(env: Any) -> DataStream[Any]:
    """Return the fixed point of a step, which ends by a criterion."""

    def step(pairs: DataStream[Any]) -> tuple[DataStream[Any], Criterion]:
        halves = pairs.key_by(lambda pair: pair[0] % 7).process(_Halve(), PAIR)
        return halves, Criterion(halves.map(lambda pair: pair[1], Types.LONG()), "sum", 60)

    pairs = _numbers(env).map(lambda number: (number, number * 1000), PAIR)
    return iterate(pairs, step, Termination(max_iterations=30, must_converge=True))


class _Least(DeltaFunction[int, Any, Any]):
    """Keeps the least label of a vertex."""

    def update(self, key: int, solution: Any, workset: list[Any]) -> Any:
        least = min(label for _, label in workset)
        return (key, least) if solution is None or least < solution[1] else None


class _Spread(KeyedCoProcessFunction[Any, Any, Any, Any]):
    """Sends the label of a vertex to its neighbours."""

    def open(self, runtime_context: Any) -> None:
        self._neighbours = runtime_context.get_map_state(MapStateDescriptor("edges", Types.LONG(), Types.LONG()))
        self._label = runtime_context.get_state(ValueStateDescriptor("label", Types.LONG()))

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._neighbours.put(value[1], value[0])
        if self._label.value() is not None:
            yield value[1], self._label.value()

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._label.update(value[1])
        for neighbour in self._neighbours.keys():  # noqa: SIM118 a state is not a dictionary
            yield neighbour, value[1]


def delta(env: Any) -> DataStream[Any]:
    """Return the connected components of a graph."""
    numbers = _numbers(env, 20)
    edges = numbers.map(lambda number: (number % _VERTICES, number * 5 % _VERTICES), PAIR)
    both = edges.flat_map(lambda edge: (edge, edge[::-1]), PAIR)
    labels = both.map(lambda edge: (edge[0], edge[0]), PAIR)
    return iterate_delta(
        labels.filter(lambda pair: pair[0] < 0),
        labels,
        lambda pair: pair[0],
        _Least(),
        lambda changed: (
            both.key_by(lambda edge: edge[0]).connect(changed.key_by(lambda pair: pair[0])).process(_Spread(), PAIR)
        ),
    )


def unbounded(env: Any) -> DataStream[Any]:
    """Return the number of steps that each number needs to become 1; feedback and input are processed together."""
    triple = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])

    def body(variables: DataStreamList, _: DataStreamList) -> IterationBodyResult:
        steps = (
            variables.get(0)
            .key_by(lambda value: value[1] % 5)
            .map(
                lambda value: (value[0], value[1] // 2 if value[1] % 2 == 0 else 3 * value[1] + 1, value[2] + 1), triple
            )
        )
        done = steps.filter(lambda value: value[1] == 1)
        return IterationBodyResult(
            DataStreamList.of(steps.filter(lambda value: value[1] != 1)), DataStreamList.of(done)
        )

    initial = _numbers(env, 9).map(lambda number: (number, number + 2, 0), triple)
    return Iterations.iterate_unbounded_streams(DataStreamList.of(initial), DataStreamList.of(), body).get(0)


class _Total(ProcessFunction[Any, Any], CheckpointedFunction, IterationListener):
    """Adds up the model and the data of a round, and emits the sum when it ends."""

    def initialize_state(self, context: Any) -> None:
        descriptor = ListStateDescriptor("total", Types.LONG())
        self._state = context.get_operator_state_store().get_list_state(descriptor)
        self._total = sum(self._state.get())

    def snapshot_state(self, context: Any) -> None:
        self._state.update([self._total])

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._total += value
        return ()

    def on_epoch_watermark_incremented(self, epoch_watermark: int, context: IterationContext) -> Iterable[Any]:
        total, self._total = self._total, 0
        yield (total + epoch_watermark) % 1009


def replayed(env: Any) -> DataStream[Any]:
    """Return the model of each round; data is replayed in every round."""

    def body(variables: DataStreamList, data: DataStreamList) -> IterationBodyResult:
        model = variables.get(0).union(data.get(0)).process(_Total(), Types.LONG()).force_non_parallel()
        return IterationBodyResult(DataStreamList.of(model), DataStreamList.of(model))

    numbers = _numbers(env)
    initial = DataStreamList.of(numbers.filter(lambda number: number == 5))
    data = ReplayableDataStreamList.replay(numbers)
    config = IterationConfig(Termination(max_iterations=6))
    return Iterations.iterate_bounded_streams_until_termination(initial, data, config, body).get(0)


class _Mix(ParameterFunction[int, int, int, int]):
    """Mixes integers, so that each update depends on what the worker has seen, and all results are exact."""

    def compute(self, records: Sequence[int], parameters: Mapping[int, int], context: WorkerContext) -> dict[int, int]:
        seen = sum(parameters.values()) + context.round
        return {number % 3: (sum(records) * 31 + seen * (number + 7)) % 1009 for number in sorted(records)}

    def apply(self, key: int, value: int | None, updates: Sequence[int]) -> int:
        return ((value or 0) * 17 + sum(updates)) % 9973


def stale(env: Any) -> DataStream[Any]:
    """Return parameters whose workers exchange their updates after every third round."""
    numbers = _numbers(env)
    initial = numbers.filter(lambda number: number < 3).map(lambda number: (number, number), PAIR)
    return iterate_parameters(numbers, initial, _Mix(), 8, staleness=2, workers=5)


class _SumOfRound(KeyedProcessFunction[Any, Any, Any]):
    """Emits the sum of a key at the end of the input, which is the end of a round."""

    def open(self, runtime_context: Any) -> None:
        self._sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self._sum.update((self._sum.value() or 0) + value)
        ctx.timer_service().register_event_time_timer(1 << 50)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield (self._sum.value() * 7 + 3) % 1009


def per_round(env: Any) -> DataStream[Any]:
    """Return the sums of each round, of operators that start without state in every round."""

    def add_up(streams: DataStreamList) -> DataStreamList:
        return DataStreamList.of(streams.get(0).key_by(lambda number: number % 5).process(_SumOfRound(), Types.LONG()))

    def body(variables: DataStreamList, _: DataStreamList) -> IterationBodyResult:
        sums = for_each_round(variables, add_up)
        return IterationBodyResult(sums, sums)

    config = IterationConfig(Termination(max_iterations=5))
    return Iterations.iterate_bounded_streams_until_termination(
        DataStreamList.of(_numbers(env)), ReplayableDataStreamList.not_replay(), config, body
    ).get(0)


def vertices(env: Any) -> DataStream[Any]:
    """Return the shortest distances in a graph."""
    triple = Types.TUPLE([Types.LONG(), Types.LONG(), Types.DOUBLE()])
    edges = _numbers(env, 20).map(lambda n: (n % 9, n * 5 % 9, float(n % 4)), triple)
    rows = Graph.from_data_stream(edges).single_source_shortest_paths(3)
    return rows.map(lambda row: (row[0], row[1]), Types.TUPLE([Types.LONG(), Types.DOUBLE()]))


def clustering(env: Any) -> DataStream[Any]:
    """Return the clustering coefficients of a graph: partition functions, without an iteration."""
    edges = _numbers(env, 24).map(lambda n: (n % 9, n * 4 % 7), PAIR)
    rows = Graph.from_data_stream(edges).local_clustering_coefficient()
    return rows.map(lambda row: (row[0], row[1]), Types.TUPLE([Types.LONG(), Types.DOUBLE()]))


PROGRAMS = {
    f"iteration_{program.__name__}": program
    for program in (bulk, delta, unbounded, replayed, stale, per_round, vertices)
} | {"graph_clustering": clustering}
