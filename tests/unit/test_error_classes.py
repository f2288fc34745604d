"""Errors that PyFlink raises as ValueError, TypeError or KeyError can be caught as these."""

from collections.abc import Callable
from typing import Any

import pytest

from millstream.common import Configuration, Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.window import TumblingEventTimeWindows
from millstream.errors import UserError
from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.catalog import ObjectPath
from millstream.table.udf import AggregateFunction, udaf, udf, udtf


class NotCallable:
    pass


class OnlyAccumulates(AggregateFunction):
    def create_accumulator(self) -> Any:
        return []

    def accumulate(self, accumulator: Any, *args: Any) -> None:
        accumulator.append(args)

    def get_value(self, accumulator: Any) -> Any:
        return len(accumulator)


async def wait(value: int) -> int:
    return value


def numbers() -> Any:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([(1, "a")])


def tables() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


CASES: list[tuple[type[Exception], Callable[[], Any]]] = [
    (ValueError, lambda: udf(len, result_type="INT", func_type="x")),
    (ValueError, lambda: udf(wait, result_type="INT", func_type="pandas")),
    (TypeError, lambda: udf(NotCallable(), result_type="INT")),
    (TypeError, lambda: udf(len, result_type=3)),
    (TypeError, lambda: udf(len)),
    (TypeError, lambda: udtf(len)),
    (RuntimeError, lambda: udaf(OnlyAccumulates())),
    (RuntimeError, lambda: OnlyAccumulates().retract([])),
    (ValueError, lambda: DataTypes.ROW().add("n")),
    (KeyError, lambda: DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())])["b"]),
    (TypeError, lambda: Types.PRIMITIVE_ARRAY(Types.STRING())),
    (TypeError, lambda: numbers().map(NotCallable())),
    (TypeError, lambda: numbers().window_all("5 s")),
    (TypeError, lambda: numbers().sink_to("file")),
    (TypeError, lambda: numbers().key_by(lambda v: v[0]).sum(1.5)),
    (ValueError, lambda: numbers().set_parallelism(0)),
    (ValueError, lambda: TumblingEventTimeWindows.of("5 parsecs")),
    (TypeError, lambda: tables().from_elements([("a",)], DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())]))),
    (TypeError, lambda: tables().from_elements([(object(),)])),
    (ValueError, lambda: tables().from_elements([])),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_error_can_be_caught_as_in_pyflink(case: tuple[type[Exception], Callable[[], Any]]) -> None:
    error_class, call = case
    with pytest.raises(error_class) as caught:
        call()
    assert isinstance(caught.value, UserError)
    assert str(caught.value) == UserError.__str__(caught.value)


def test_paths_of_catalog_objects_are_only_compared_with_paths() -> None:
    assert ObjectPath("a", "b") < ObjectPath("a", "c")
    for compare in (lambda p: p < 42, lambda p: p <= 42, lambda p: p > "a.b", lambda p: p >= None):
        with pytest.raises(TypeError):
            compare(ObjectPath("a", "b"))
    assert ObjectPath("a", "b") != 42


def test_a_missing_list_is_an_empty_list() -> None:
    assert Configuration.parse_list_value(None) == []
