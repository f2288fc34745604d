"""Records as objects: changing an object after it was emitted or received has no effect on other functions."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.common import Types
from millstream.connector.source import ReaderContext, SplitRange
from millstream.connectors.collection import CollectionSource
from millstream.datastream import FlatMapFunction, ReduceFunction, StreamExecutionEnvironment
from millstream.datastream.functions import KeySelector
from millstream.errors import UserError
from millstream.runtime.rowwise import UserFunctionFailed


class Growing(FlatMapFunction):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def flat_map(self, value: int) -> Any:
        self.seen.append(value)
        yield self.seen


def test_with_object_reuse_records_are_not_copied(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    assert list(env.from_collection([1, 2]).flat_map(Growing()).execute_and_collect()) == [[1], [1, 2]]
    env.get_config().enable_object_reuse()
    assert list(env.from_collection([1, 2]).flat_map(Growing()).execute_and_collect()) == [[1, 2], [1, 2]]


def test_a_collection_is_unchanged_when_it_is_read_again() -> None:
    """An epoch that runs again reads the same elements, although a function changed those of the first run."""
    reader = CollectionSource([[1], [2]], Types.PICKLED_BYTE_ARRAY()).create_reader(ReaderContext(0, 1, 100))
    reads = [next(iter(reader.read(SplitRange("collection", 0, 2)))).values for _ in range(2)]
    reads[0][0].append(0)
    assert reads[1] == [[1], [2]]


class Rich(KeySelector):
    calls: list[str] = []  # noqa: RUF012 - shared by all copies

    def open(self, runtime_context: Any) -> None:
        self.calls.append("open")
        self.modulus = 2

    def close(self) -> None:
        self.calls.append("close")

    def get_key(self, value: int) -> int:
        return value % self.modulus


class Add(ReduceFunction):
    def reduce(self, value1: int, value2: int) -> int:
        return value1 + value2


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_key_selector_is_opened_and_closed(env: StreamExecutionEnvironment, mode: str) -> None:
    Rich.calls.clear()
    env._configuration.set_string("execution.runtime-mode", mode)
    env.set_parallelism(2)
    results = list(env.from_collection([1, 2, 3, 4], Types.INT()).key_by(Rich()).reduce(Add()).execute_and_collect())
    assert sorted(results)[-2:] == [4, 6]
    assert Rich.calls.count("open") == Rich.calls.count("close") > 0


def test_a_custom_partitioner_has_an_opened_key_selector(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    stream = env.from_collection([1, 2, 3], Types.INT())
    stream = stream.partition_custom(lambda key, count: key % count, Rich()).map(lambda value: value)
    assert sorted(stream.execute_and_collect()) == [1, 2, 3]


def test_the_chain_of_causes_is_shown(env: StreamExecutionEnvironment) -> None:
    def fail(value: int) -> int:
        try:
            return {}[value]  # type: ignore[no-any-return]
        except KeyError as problem:
            msg = "no quota"
            raise LookupError(msg) from problem

    env.from_collection([7]).map(fail).print()
    with pytest.raises(UserFunctionFailed) as caught:
        env.execute()
    shown = str(caught.value)
    assert isinstance(caught.value, UserError)
    assert "KeyError: 7" in shown
    assert "direct cause of the following exception" in shown
    assert shown.index("KeyError: 7") < shown.index("LookupError: no quota")
    assert "rowwise.py" not in shown


def test_operators_keep_the_parallelism_they_were_created_with(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(1)
    first = env.from_collection([1]).map(lambda value: value).name("first")
    env.set_parallelism(3)
    first.map(lambda value: value).name("second").print()
    parallelism = {node.name: node.parallelism for node in env._graph().nodes}
    assert (parallelism["first"], parallelism["second"]) == (1, 3)


def test_the_records_of_one_subtask_are_collected_in_order(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(3)
    assert list(env.from_collection(list(range(20))).execute_and_collect()) == list(range(20))
