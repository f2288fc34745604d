"""Iterations: bulk, delta and unbounded ones; what terminates them, and what is refused."""

import pytest

from millstream.client.job_progress import Progress
from millstream.datastream import (
    KeyedProcessFunction,
    ProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from millstream.datastream.state import ValueStateDescriptor
from millstream.datastream.window import GlobalWindows
from millstream.errors import InvalidArgument, UserError
from millstream.graph.loops import UnusableIteration
from millstream.iteration import (
    Criterion,
    DataStreamList,
    DeltaFunction,
    IterationBodyResult,
    IterationConfig,
    IterationListener,
    Iterations,
    OperatorLifeCycle,
    ReplayableDataStreamList,
    Termination,
    for_each_round,
    iterate,
    iterate_delta,
)
from millstream.table import StreamTableEnvironment
from millstream.types.factory import Types


def double(numbers):
    return numbers.map(lambda number: 2 * number, Types.LONG())


def collect(stream):
    return sorted(stream.execute_and_collect())


def bounded(initial, body, termination=None, replayed=(), not_replayed=()):
    return Iterations.iterate_bounded_streams_until_termination(
        DataStreamList.of(*initial),
        ReplayableDataStreamList(tuple(replayed), tuple(not_replayed)),
        IterationConfig(termination or Termination(when_empty=True)),
        body,
    )


# -------------------------------------------------------------------------------------------------------------- bulk


def test_a_bulk_iteration_applies_its_step_the_given_number_of_times(env):
    assert collect(iterate(env.from_collection([1, 2, 3]), double, 5)) == [32, 64, 96]


def test_two_iterations_in_a_row(env):
    first = iterate(env.from_collection([1, 2]), double, 3)
    assert collect(iterate(first, lambda numbers: numbers.map(lambda number: number + 1, Types.LONG()), 2)) == [10, 18]


def test_the_result_is_used_in_a_later_program_and_in_a_table(env):
    first = iterate(env.from_collection([1, 2]), double, 3)
    assert collect(first) == [8, 16]
    second = iterate(env.from_collection([5]), double, 2)
    assert collect(first.union(second)) == [8, 16, 20]
    table = StreamTableEnvironment.create(env).from_data_stream(first)
    assert sorted(row[0] for row in table.execute().collect()) == [8, 16]


def test_an_iteration_of_no_records_has_no_result(env):
    nothing = env.from_collection([1]).filter(lambda number: number > 1)
    assert collect(iterate(nothing, double, 3)) == []


def test_a_criterion_ends_a_bulk_iteration(env):
    def halve(numbers):
        halves = numbers.map(lambda number: number / 2, Types.DOUBLE())
        return halves, Criterion(halves, "max", at_most=1.0)

    assert collect(iterate(env.from_collection([16.0, 3.0]), halve, Termination(max_iterations=50))) == [0.1875, 1.0]


def test_an_iteration_that_does_not_converge_fails_with_its_last_values(env):
    def grow(numbers):
        doubled = double(numbers)
        return doubled, Criterion(doubled, "sum", at_most=0, name="total")

    stream = iterate(env.from_collection([1]), grow, Termination(max_iterations=3, must_converge=True), name="growth")
    with pytest.raises(UserError, match=r"'growth' has not converged in 3 rounds.* 1 feedback records, total = 8"):
        collect(stream)


def test_an_iteration_that_never_ends_fails_at_its_deadline(env):
    with pytest.raises(UserError, match="'iteration-1' has not terminated 200 ms after the end of its input"):
        collect(iterate(env.from_collection([1]), lambda numbers: numbers.map(lambda n: n), Termination(deadline=200)))


def test_an_error_of_a_function_names_the_round_and_the_record(env):
    numbers = env.from_collection([1])
    failing = iterate(numbers, lambda stream: stream.map(lambda n: 2 * n if n < 8 else n // 0, Types.LONG()), 9)
    with pytest.raises(UserError, match=r"(?s)ZeroDivisionError.*round 3 of iteration 'iteration-1', record 8"):
        collect(failing)


# ------------------------------------------------------------------------------------------------------------- delta


class CountDown(DeltaFunction):
    def update(self, key, solution, workset):
        return (key, solution[1] - 1) if solution[1] > 0 else None


def test_a_delta_iteration_ends_with_an_empty_workset(env):
    numbers = env.from_collection([("a", 3), ("b", 5), ("c", 0)])
    result = iterate_delta(numbers, numbers, lambda pair: pair[0], CountDown())
    assert collect(result) == [("a", 0), ("b", 0), ("c", 0)]


def test_elements_without_a_workset_stay(env):
    solution = env.from_collection([("a", 3), ("b", 5)])
    workset = env.from_collection([("a", 0)])
    result = iterate_delta(solution, workset, lambda pair: pair[0], CountDown(), termination=2)
    assert collect(result) == [("a", 1), ("b", 5)]


def test_keys_of_different_types_are_refused(env):
    typed = Types.TUPLE([Types.STRING(), Types.LONG()])
    numbers = env.from_collection([("a", 3)], typed)
    with pytest.raises(InvalidArgument, match="the solution set of iteration 'iteration-1' has keys of type"):
        iterate_delta(numbers, numbers, (0, 1), CountDown())


# ------------------------------------------------------------------------------------------------ bounded and unbounded


class Rounds(ProcessFunction, IterationListener):
    """Emits the number of records of each round, and marks the end."""

    def __init__(self):
        self.count = 0

    def process_element(self, value, ctx):
        self.count += 1
        return ()

    def on_epoch_watermark_incremented(self, epoch_watermark, context):
        yield epoch_watermark, self.count
        self.count = 0

    def on_iteration_terminated(self, context):
        yield "end", context.get_aggregate("unknown")


def test_a_listener_is_notified_after_all_records_of_a_round():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)

    def body(variables, data):
        left = variables[0].map(lambda number: number - 1).filter(lambda number: number > 0)
        return IterationBodyResult(DataStreamList.of(left), DataStreamList.of(variables[0].process(Rounds())))

    counts = bounded([env.from_collection([3, 1, 2])], body)[0]
    assert list(counts.execute_and_collect()) == [(0, 3), (1, 2), (2, 1), ("end", None)]


def test_replayed_inputs_come_in_every_round_and_others_once():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)

    def body(variables, data):
        seen = data[0].map(lambda _: "again").union(data[1].map(lambda _: "once")).process(Rounds())
        return IterationBodyResult(DataStreamList.of(variables[0].map(lambda n: n)), DataStreamList.of(seen))

    constants = env.from_collection([1, 2]), env.from_collection([3])
    counts = bounded([env.from_collection([0])], body, Termination(max_iterations=3), constants[:1], constants[1:])[0]
    assert list(counts.execute_and_collect()) == [(0, 3), (1, 2), (2, 2), ("end", None)]


def test_an_iteration_ends_without_records_of_its_criteria_stream(env):
    def body(variables, data):
        numbers = variables[0].map(lambda number: number + 1, Types.LONG())
        return IterationBodyResult(
            DataStreamList.of(numbers), DataStreamList.of(numbers), numbers.filter(lambda number: number < 3)
        )

    assert collect(bounded([env.from_collection([0])], body)[0]) == [1, 2, 3]


def test_two_variable_streams_are_separate(env):
    def body(variables, data):
        numbers = variables[0].map(lambda number: number + 1, Types.LONG())
        words = variables[1].map(lambda word: word + "!", Types.STRING())
        both = numbers.map(str, Types.STRING()).union(words)
        return IterationBodyResult(DataStreamList.of(numbers, words), DataStreamList.of(both))

    initial = [env.from_collection([1]), env.from_collection(["a"])]
    assert collect(bounded(initial, body, Termination(max_iterations=2))[0]) == ["2", "3", "a!", "a!!"]


def test_feedback_of_an_unbounded_iteration_is_processed_until_none_is_left(env):
    def body(variables, data):
        less = variables[0].rebalance().map(lambda number: number - 1, Types.LONG())
        return IterationBodyResult(
            DataStreamList.of(less.filter(lambda n: n > 0)), DataStreamList.of(less.filter(lambda n: n <= 0))
        )

    streams = Iterations.iterate_unbounded_streams(
        DataStreamList.of(env.from_collection(list(range(20)))), DataStreamList.of(), body
    )
    assert collect(streams[0]) == [-1] + [0] * 19


# --------------------------------------------------------------------------------------------------------- lifecycles


class Total(KeyedProcessFunction):
    """Adds up the records of a key in state and in the function, and emits both at the end of the input."""

    def __init__(self):
        self.own = 0

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value, ctx):
        self.own += value
        self.total.update((self.total.value() or 0) + value)
        ctx.timer_service().register_event_time_timer(1 << 50)
        return ()

    def on_timer(self, timestamp, ctx):
        assert ctx.timer_service().current_watermark() > timestamp
        yield self.total.value(), self.own


def totals_per_round(streams):
    pair = Types.TUPLE([Types.LONG(), Types.LONG()])
    return DataStreamList.of(streams[0].key_by(lambda _: 0).process(Total(), pair))


@pytest.mark.parametrize("whole_body", [False, True])
def test_operators_that_live_for_one_round_begin_anew_and_see_the_end_of_their_input(env, whole_body):
    def body(variables, data):
        totals = (totals_per_round if whole_body else lambda streams: for_each_round(streams, totals_per_round))(
            variables
        )
        more = variables[0].map(lambda number: number + 1, Types.LONG())
        return IterationBodyResult(DataStreamList.of(more), totals)

    life_cycle = OperatorLifeCycle.PER_ROUND if whole_body else OperatorLifeCycle.ALL_ROUND
    streams = Iterations.iterate_bounded_streams_until_termination(
        DataStreamList.of(env.from_collection([1, 2, 3], Types.LONG())),
        ReplayableDataStreamList.not_replay(),
        IterationConfig(Termination(max_iterations=3), operator_life_cycle=life_cycle),
        body,
    )
    assert collect(streams[0]) == [(6, 6), (9, 9), (12, 12)]


def test_a_reduce_and_a_window_give_the_result_of_each_round(env):
    def per_round(streams):
        keyed = streams[0].key_by(lambda number: number % 2)
        windows = keyed.window(GlobalWindows.create_with_end_of_stream_trigger())
        return DataStreamList.of(windows.reduce(lambda one, other: one + other))

    def body(variables, data):
        sums = for_each_round(variables, per_round)
        return IterationBodyResult(DataStreamList.of(sums[0].map(lambda n: n, Types.LONG())), sums)

    numbers = env.from_collection([1, 3, 4, 6], Types.LONG())
    assert collect(bounded([numbers], body, Termination(max_iterations=2))[0]) == [4, 10, 14]


def test_operators_of_one_round_outside_of_a_bounded_iteration_are_refused(env):
    numbers = env.from_collection([1], Types.LONG())
    for_each_round(DataStreamList.of(numbers), totals_per_round)[0].print()
    with pytest.raises(UnusableIteration, match="lives for one round, but is not in the body of a bounded iteration"):
        env.execute()
    with pytest.raises(InvalidArgument, match=r"'Source: .*' cannot start again in every round"):
        for_each_round(DataStreamList.of(numbers), lambda _: DataStreamList.of(env.from_collection([2])))


# ----------------------------------------------------------------------------------------------------------- progress


def test_progress_shows_the_round_the_workset_and_the_criterion(env):
    progress, lines = Progress("job"), []
    env.register_listener(progress)
    progress.on_change = lambda: lines.extend(text for name, text in progress.rows() if name == "iteration halves")

    def halve(numbers):
        halves = numbers.map(lambda number: number / 2, Types.DOUBLE())
        return halves, Criterion(halves, "max", at_most=1.0, name="largest")

    collect(iterate(env.from_collection([16.0, 3.0]), halve, Termination(max_iterations=50), name="halves"))
    assert list(dict.fromkeys(lines))[-4:] == [
        "round 1, 2 records in the workset, largest = 4",
        "round 2, 2 records in the workset, largest = 2",
        "round 3, 2 records in the workset, largest = 1",
        "terminated after 4 rounds",
    ]


# ----------------------------------------------------------------------------------------------------------- refused


def test_an_iteration_without_termination_is_refused(env):
    with pytest.raises(InvalidArgument, match="iteration 'iteration-1' has no termination"):
        iterate(env.from_collection([1]), double)


def test_feedback_of_another_type_is_refused(env):
    numbers = env.from_collection([1], Types.LONG())
    with pytest.raises(InvalidArgument, match="map one of them to the type of the other"):
        iterate(numbers, lambda numbers: numbers.map(str, Types.STRING()), 2)


def test_iterations_of_one_name_are_refused(env):
    first = iterate(env.from_collection([1]), double, 2, name="same")
    iterate(first, double, 3, name="same").print()
    with pytest.raises(UnusableIteration, match="two iterations have the name 'same'"):
        env.execute()


def test_nested_iterations_are_refused(env):
    numbers = env.from_collection([1])
    iterate(numbers, lambda inner: iterate(inner, double, 2, name="inner"), 2, name="outer").print()
    with pytest.raises(UnusableIteration, match="nested iterations are not possible"):
        env.execute()


def test_batch_mode_is_refused(env):
    iterate(env.from_collection([1]), double, 2).print()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    with pytest.raises(UserError, match="cannot run in BATCH mode"):
        env.execute()
