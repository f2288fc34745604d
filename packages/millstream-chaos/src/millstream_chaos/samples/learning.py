"""Small programs that train and apply models, for simulations.

Promises: the output depends on the input only; numbers are rounded, because sums of floats depend on their order.
Does not know: engines, faults."""

from __future__ import annotations

from typing import Any

from millstream.datastream.data_stream import DataStream
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.ml import LinearRegression, OnlineLinearRegression
from millstream.ml.linalg import DenseVectorTypeInfo
from millstream.table import StreamTableEnvironment
from millstream.types.factory import Types
from millstream_chaos.samples import sample_input
from millstream_chaos.samples.splits_source import SplitsSource

ROW = Types.ROW_NAMED(["number", "features", "label"], [Types.LONG(), DenseVectorTypeInfo(), Types.DOUBLE()])
PAIR = Types.TUPLE([Types.LONG(), Types.DOUBLE()])


def _rows(env: Any, *, one_split: bool = False) -> Any:
    """Return a table of samples: the label is 3 times the remainder by 7, plus 1."""
    splits = sample_input.numbers(60 if one_split else 20)
    if one_split:
        splits = (tuple(sorted(number for split in splits for number in split)),)
    source = SplitsSource(splits, Types.LONG())
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    if one_split:
        numbers.set_parallelism(1)
    rows = numbers.map(lambda n: (n, [float(n % 7), 1.0], 3.0 * (n % 7) + 1.0), ROW)
    t_env = StreamTableEnvironment.create(env)
    return t_env, t_env.from_data_stream(rows.set_parallelism(1) if one_split else rows)


def regression(env: Any) -> DataStream[Any]:
    """Return the predictions of a model that is trained in three rounds."""
    t_env, table = _rows(env)
    model = LinearRegression().set_max_iter(3).set_learning_rate(0.05).set_global_batch_size(1000).fit(table)
    predictions = t_env.to_data_stream(model.transform(table)[0])
    return predictions.map(lambda row: (row["number"], round(row["prediction"], 6)), PAIR)  # type: ignore[no-any-return]


def online(env: Any) -> DataStream[Any]:
    """Return the first coefficient of all versions of a model."""
    t_env, table = _rows(env, one_split=True)
    model = OnlineLinearRegression().set_global_batch_size(7).fit(table)
    versions = t_env.to_data_stream(model.get_model_data()[0])
    return versions.map(lambda row: (row["model_version"], round(row["coefficient"][0], 6)), PAIR)  # type: ignore[no-any-return]


PROGRAMS = {f"learning_{program.__name__}": program for program in (regression, online)}
