"""Undocumented behaviour that PyFlink programs rely on: the text of records, and streams that are used by several
jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from millstream.common import Row, Types
from millstream.datastream import EmbeddedRocksDBStateBackend, RuntimeExecutionMode, StreamExecutionEnvironment
from millstream.errors import UserError

ORDERS = Types.ROW_NAMED(["id", "info"], [Types.INT(), Types.STRING()])


@pytest.mark.parametrize(
    ("record", "kind", "text"),
    [
        ((1, {"a": "x"}), None, "(1, {'a': 'x'})"),
        ("text", None, "text"),
        (True, None, "True"),
        (
            (1, "x", 0.5, True),
            Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE(), Types.BOOLEAN()]),
            "(1,x,0.5,true)",
        ),
        ({"a": 1}, Types.MAP(Types.STRING(), Types.INT()), "{a=1}"),
        (Row(1, None), ORDERS, "+I[1,None]"),
    ],
)
def test_print_formats_records_as_pyflink(
    env: StreamExecutionEnvironment, record: Any, kind: Any, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    env.set_parallelism(1).from_collection([record], kind).print()
    env.execute()
    assert capsys.readouterr().out == f"{text}\n"


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_the_union_of_a_stream_with_itself_has_every_record_twice(env: StreamExecutionEnvironment, mode: str) -> None:
    numbers = env.set_runtime_mode(RuntimeExecutionMode[mode]).from_collection([1, 2], Types.INT())
    larger = numbers.map(lambda number: number + 10, Types.INT())
    for united, expected in (
        (numbers.union(numbers), [1, 1, 2, 2]),
        (larger.union(larger, larger), [11] * 3 + [12] * 3),
    ):
        with united.map(lambda number: number, Types.INT()).execute_and_collect() as found:
            assert sorted(found) == expected


def test_a_stream_can_be_used_again_after_its_program_was_run(
    env: StreamExecutionEnvironment, capsys: pytest.CaptureFixture[str]
) -> None:
    orders = env.set_parallelism(1).from_collection([(1, '{"n": 5}'), (2, '{"n": 7}')], ORDERS)

    def show(stream: Any) -> list[str]:
        stream.print()
        env.execute()
        return capsys.readouterr().out.splitlines()

    def count(order):  # type: ignore[no-untyped-def]  # no annotation, no type
        return order.id, json.loads(order.info)["n"]

    counted = orders.map(count)
    assert show(counted) == ["(1, 5)", "(2, 7)"]
    assert show(orders.filter(lambda order: order.id == 1).map(count)) == ["(1, 5)"]
    assert show(counted.key_by(lambda pair: 0).sum(1)) == ["(1, 5)", "(1, 12)"]
    assert counted.get_name() == "Map"


def test_streams_of_a_closed_environment_cannot_be_used(env: StreamExecutionEnvironment) -> None:
    numbers = env.from_collection([1], Types.INT())
    env.close()
    with pytest.raises(UserError, match="has been closed"):
        numbers.map(lambda number: number)


def test_a_keyed_stream_is_collected_as_pairs_of_key_and_record(env):
    stream = env.from_collection([("a", 1), ("b", 2), ("a", 3)], Types.TUPLE([Types.STRING(), Types.INT()]))
    with stream.key_by(lambda record: record[0], Types.STRING()).execute_and_collect() as pairs:
        assert sorted(pairs, key=str) == [
            Row(f0="a", f1=("a", 1)),
            Row(f0="a", f1=("a", 3)),
            Row(f0="b", f1=("b", 2)),
        ]


@pytest.mark.parametrize("mode", ["STREAMING", "BATCH"])
def test_a_list_can_be_a_key(env, mode):
    env.set_runtime_mode(RuntimeExecutionMode[mode])
    numbers = env.from_collection([(1, 10), (2, 20), (1, 30)], Types.TUPLE([Types.INT(), Types.INT()]))
    sums = numbers.key_by(lambda record: [record[0]]).reduce(lambda a, b: (a[0], a[1] + b[1]))
    with sums.execute_and_collect() as found:
        expected = [(1, 10), (1, 40), (2, 20)] if mode == "STREAMING" else [(1, 40), (2, 20)]
        assert sorted(found) == expected


def test_the_results_of_a_job_are_the_accumulators_of_the_program(env):
    env.from_collection([1]).print()
    result = env.execute()
    assert result.get_all_accumulator_results() == {}
    assert result.get_accumulator_result("millstream.restarts") == 0


def test_directories_of_state_are_paths():
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("file:///disk1/state/", "/disk2/state", "file://host/disk3")
    assert backend.get_db_storage_paths() == ["/disk1/state", "/disk2/state", "/disk3"]
