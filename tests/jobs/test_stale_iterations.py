"""Shared parameters and bounded staleness: equal to plain loops byte by byte, at every parallelism."""

import struct

import numpy as np
import pytest

from millstream.common import Types
from millstream.datastream import ProcessFunction, StreamExecutionEnvironment
from millstream.errors import InvalidArgument, UserError
from millstream.iteration import (
    DataStreamList,
    IterationBodyResult,
    IterationConfig,
    IterationListener,
    Iterations,
    ParameterFunction,
    ReplayableDataStreamList,
    Termination,
    iterate_parameters,
)
from millstream.state.key_groups import stable_hash

WORKERS, RATE = 4, 0.2
PAIR_OF_LONGS = Types.TUPLE([Types.LONG(), Types.LONG()])
PAIR = Types.TUPLE([Types.STRING(), Types.DOUBLE()])
SAMPLE = Types.TUPLE([Types.LONG(), Types.DOUBLE(), Types.DOUBLE()])


def draw():
    chance = np.random.default_rng(5)
    features = chance.normal(size=60)
    labels = 3.0 * features - 1.5 + chance.normal(scale=0.1, size=60)
    return [(index, float(x), float(y)) for index, (x, y) in enumerate(zip(features, labels, strict=True))]


SAMPLES = draw()
START = [("intercept", 0.0), ("slope", 0.0)]


class Descend(ParameterFunction):
    """Gradient descent of a linear regression."""

    def compute(self, records, parameters, context):
        slope, intercept = parameters["slope"], parameters["intercept"]
        errors = [slope * x + intercept - y for _, x, y in sorted(records)]
        context.report("loss", sum(error * error for error in errors))
        gradient = sum(error * x for error, (_, x, _) in zip(errors, sorted(records), strict=True))
        return {"slope": gradient / len(SAMPLES), "intercept": sum(errors) / len(SAMPLES)}

    def apply(self, key, value, updates):
        return value - RATE * sum(updates)


class Context:
    def __init__(self):
        self.round = self.worker = 0

    def report(self, name, value, kind="sum"):
        pass


def plain_loop(rounds, staleness):
    """The same as a loop: workers see the others' updates after every exchange, and their own at once."""
    function = Descend()
    groups = [[s for s in SAMPLES if stable_hash(s[0]) % WORKERS == worker] for worker in range(WORKERS)]
    parameters, number = dict(START), 0
    while number < rounds:
        updates = {}
        for group in groups:
            seen = dict(parameters)
            for later in range(number, min(number + staleness + 1, rounds)):
                computed = function.compute(group, seen, Context())
                updates.setdefault(later, []).append(computed)
                seen = {key: function.apply(key, seen[key], [computed[key]]) for key in seen}
        for later in sorted(updates):
            for key in parameters:
                parameters[key] = function.apply(key, parameters[key], [update[key] for update in updates[later]])
        number += staleness + 1
    return parameters


def train(parallelism, staleness, termination=10, function=None, **options):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    return iterate_parameters(
        env.from_collection(SAMPLES, SAMPLE).rebalance(),
        env.from_collection(START, PAIR),
        function or Descend(),
        termination,
        staleness=staleness,
        key=lambda sample: sample[0],
        workers=WORKERS,
        **options,
    )


def to_bytes(pairs):
    return [(key, struct.pack("<d", value)) for key, value in sorted(pairs)]


@pytest.mark.parametrize("staleness", [0, 2])
def test_parameters_are_those_of_a_plain_loop_byte_by_byte_at_every_parallelism(staleness):
    expected = to_bytes(plain_loop(10, staleness).items())
    for parallelism in (1, 2, 3):
        assert to_bytes(train(parallelism, staleness).execute_and_collect()) == expected


def test_without_staleness_a_round_is_one_of_a_bulk_synchronous_iteration_byte_by_byte():
    """The same as an iteration of Flink ML's kind: replayed samples, a broadcast model, one operator that adds up."""

    class Train(ProcessFunction, IterationListener):
        def __init__(self):
            self.samples, self.model = [], {}

        def process_element(self, value, ctx):
            if len(value) == 3:
                self.samples.append(value)
            else:
                self.model[value[0]] = value[1]
            return ()

        def on_epoch_watermark_incremented(self, epoch_watermark, context):
            function = Descend()
            groups = [[s for s in self.samples if stable_hash(s[0]) % WORKERS == w] for w in range(WORKERS)]
            computed = [function.compute(group, self.model, Context()) for group in groups]
            self.samples = []
            for key, value in sorted(self.model.items()):
                yield key, function.apply(key, value, [update[key] for update in computed])

    def body(variables, data):
        untyped = Types.PICKLED_BYTE_ARRAY()
        both = variables[0].map(tuple, untyped).union(data[0].map(tuple, untyped))
        model = both.process(Train(), PAIR).force_non_parallel()
        return IterationBodyResult(DataStreamList.of(model), DataStreamList.of(model))

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    models = Iterations.iterate_bounded_streams_until_termination(
        DataStreamList.of(env.from_collection(START, PAIR)),
        ReplayableDataStreamList.replay(env.from_collection(SAMPLES, SAMPLE)),
        IterationConfig(Termination(max_iterations=10)),
        body,
    )[0]
    last = list(models.execute_and_collect())[-2:]
    assert to_bytes(last) == to_bytes(train(2, 0).execute_and_collect())


@pytest.mark.parametrize(("staleness", "error"), [(0, 1e-6), (3, 2e-3)])
def test_a_regression_converges_with_and_without_staleness(staleness, error):
    """With constant steps and stale parameters, it ends near the best parameters, as it should."""
    features = np.array([[x, 1.0] for _, x, _ in SAMPLES])
    best, *_ = np.linalg.lstsq(features, np.array([y for _, _, y in SAMPLES]), rcond=None)
    found = dict(train(2, staleness, 120).execute_and_collect())
    assert [found["slope"], found["intercept"]] == pytest.approx(best.tolist(), abs=error)


def test_rounds_end_when_a_reported_aggregate_is_small_enough():
    termination = Termination(max_iterations=200, must_converge=True)
    found = dict(train(2, 1, termination, until=("loss", 0.8)).execute_and_collect())
    loss = sum((found["slope"] * x + found["intercept"] - y) ** 2 for _, x, y in SAMPLES)
    assert loss < 0.8
    with pytest.raises(UserError, match=r"has not converged in 4 rounds; .* loss = "):
        list(train(2, 1, Termination(4, must_converge=True), until=("loss", 0.8)).execute_and_collect())


class Count(ParameterFunction):
    """Has updates in three rounds, for parameters that were not there before, too."""

    def compute(self, records, parameters, context):
        return {context.worker: 1} if context.round < 3 else {}

    def apply(self, key, value, updates):
        assert len(updates) == 1
        return (value or 0) + updates[0]


@pytest.mark.parametrize("staleness", [0, 1])
def test_the_iteration_ends_without_updates_and_parameters_can_be_new(env, staleness):
    numbers, nothing = env.from_collection(list(range(50)), Types.LONG()), env.from_collection([], PAIR_OF_LONGS)
    termination = Termination(when_empty=True)
    result = iterate_parameters(numbers, nothing, Count(), termination, staleness=staleness, workers=3)
    assert sorted(result.execute_and_collect()) == [(0, 3), (1, 3), (2, 3)]


class Broken(Descend):
    def compute(self, records, parameters, context):
        if context.round == 4:
            raise ZeroDivisionError
        return super().compute(records, parameters, context)


def test_an_error_names_the_worker_and_its_round():
    pattern = r"(?s)ZeroDivisionError.*rounds 3 to 5 of iteration 'iteration-1', key 'worker 0, round 4'"
    with pytest.raises(UserError, match=pattern):
        list(train(1, 2, function=Broken()).execute_and_collect())


class NoDictionary(Descend):
    def compute(self, records, parameters, context):
        return 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"staleness": -1}, "staleness is -1"),
        ({"staleness": 1.5}, r"staleness is 1\.5"),
        ({"staleness": 1, "termination": None}, "'iteration-1' has no termination"),
        ({"staleness": 0, "function": NoDictionary()}, r"compute returned 1\.0"),
    ],
)
def test_what_cannot_run_is_refused(options, message):
    with pytest.raises(UserError, match=message):
        list(train(1, **options).execute_and_collect())


def test_less_than_one_worker_is_refused(env):
    pairs = env.from_collection(START, PAIR)
    with pytest.raises(InvalidArgument, match="workers is 0"):
        iterate_parameters(pairs, pairs, Descend(), 1, workers=0)
