"""Random functions: every call draws a number for each row, a replay of an epoch draws the same numbers, and a seed
determines Java's sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.runtime.memory import OperatorMemory
from millstream.runtime.random_numbers import RandomNumbers
from millstream.sql.evaluation.evaluate import Frame, Projection
from millstream.sql.expressions.nodes import Apply, Lit
from millstream.sql.functions.java_random import JavaRandom
from millstream.sql.types import data_types as t
from millstream.table import EnvironmentSettings, TableEnvironment

NUMBERS = (
    "CREATE TABLE numbers (id BIGINT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', "
    "'fields.id.start' = '1', 'fields.id.end' = '400')"
)
TEXT, INT = t.CharType(36), t.INT
UUID = Apply(TEXT, "UUID", ())


@pytest.fixture
def numbers(t_env: TableEnvironment) -> TableEnvironment:
    """Create a table of 400 rows, which two subtasks read in several epochs of several batches."""
    t_env.get_config().set("parallelism.default", "2")
    t_env.get_config().set("millstream.epoch.max-records", "100")
    t_env.execute_sql(NUMBERS)
    return t_env


def _rows(env: TableEnvironment, query: str) -> list[Any]:
    with env.execute_sql(query).collect() as rows:
        return list(rows)


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_uuids_differ_in_every_row_and_column(inline_engine: None, mode: str) -> None:
    settings = EnvironmentSettings.in_streaming_mode() if mode == "streaming" else EnvironmentSettings.in_batch_mode()
    env = TableEnvironment.create(settings)
    env.get_config().set("parallelism.default", "2")
    env.get_config().set("millstream.epoch.max-records", "100")
    env.execute_sql(NUMBERS)
    rows = _rows(env, "SELECT UUID(), UUID(), id FROM numbers UNION ALL SELECT UUID(), UUID(), id FROM numbers")
    assert len({value for row in rows for value in (row[0], row[1])}) == 4 * 400


def test_random_numbers_differ_in_every_row_and_column(numbers: TableEnvironment) -> None:
    rows = _rows(numbers, "SELECT RAND(), RAND(), RAND_INTEGER(2000000000) FROM numbers")
    assert len({value for row in rows for value in row}) == 3 * 400


def test_a_random_column_that_is_read_twice_is_drawn_once(numbers: TableEnvironment) -> None:
    drawn_values = "(SELECT UUID() AS u, RAND() AS r FROM numbers)"
    assert all(row[0] == row[1] for row in _rows(numbers, f"SELECT u, u FROM {drawn_values}"))
    assert all(row[0] < 0.5 for row in _rows(numbers, f"SELECT r FROM {drawn_values} WHERE r < 0.5"))


def test_values_are_drawn_for_each_row(t_env: TableEnvironment) -> None:
    rows = _rows(t_env, "SELECT * FROM (VALUES (1, UUID()), (2, UUID()), (3, 'none')) AS v (id, u)")
    numbers_of_rows = {row[0]: row[1] for row in rows}
    assert set(numbers_of_rows) == {1, 2, 3}
    assert len(set(numbers_of_rows.values())) == 3
    assert numbers_of_rows[3].strip() == "none"


def test_a_pattern_draws_for_each_match(t_env: TableEnvironment) -> None:
    t_env.execute_sql(
        "CREATE TABLE timed (id BIGINT, at AS PROCTIME()) WITH ('connector' = 'datagen', "
        "'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '20')"
    )
    rows = _rows(
        t_env,
        "SELECT * FROM timed MATCH_RECOGNIZE (ORDER BY at MEASURES A.id AS id, UUID() AS u "
        "ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A) DEFINE A AS A.id > 0)",
    )
    assert len({row[1] for row in rows}) == len(rows) == 20


def _draws(**changed: Any) -> RandomNumbers:
    draws = RandomNumbers()
    draws.begin_epoch(
        **{"job": "j", "epoch": 3, "now": 5, "operator": "calc", "subtask": 0, "memory": OperatorMemory(), **changed}
    )
    return draws


def _draw(draws: RandomNumbers) -> list[str]:
    columns = Projection([UUID, UUID]).columns(Frame([], 2, draws=draws))
    return [value for column in columns for value in column.to_pylist()]


def test_a_replay_draws_the_same_numbers() -> None:
    assert _draw(_draws()) == _draw(_draws())


@pytest.mark.parametrize("changed", [{"job": "k"}, {"epoch": 4}, {"now": 6}, {"operator": "sink"}, {"subtask": 1}])
def test_other_calls_epochs_and_subtasks_draw_other_numbers(changed: dict[str, Any]) -> None:
    assert not set(_draw(_draws())) & set(_draw(_draws(**changed)))


def test_a_seed_gives_javas_sequence() -> None:
    assert JavaRandom(42).doubles(2).tolist() == [0.7275636800328681, 0.6832234717598454]
    assert JavaRandom(42).integers(10, 7).tolist() == [0, 3, 8, 4, 0, 5, 5]
    late = JavaRandom(42, position=4)
    assert late.integers(10, 3).tolist() == [0, 5, 5]
    many = JavaRandom(7).integers((1 << 30) + 1, 1000)  # nearly every second number is rejected
    replayed = JavaRandom(7)
    assert np.concatenate([replayed.integers((1 << 30) + 1, 250) for _ in range(4)]).tolist() == many.tolist()


def test_seeded_columns_have_the_same_sequence_and_continue_it() -> None:
    seeded = Apply(t.DOUBLE, "RAND", (Lit(INT.not_null(), 42),))
    memory = OperatorMemory()
    numbers_of_rows = []
    for epoch in (1, 2):
        frame = Frame([], 1, draws=_draws(epoch=epoch, memory=memory))
        first, second = Projection([seeded, seeded]).columns(frame)
        assert first == second
        numbers_of_rows += first.to_pylist()
    assert numbers_of_rows == [0.7275636800328681, 0.6832234717598454]


def test_a_seed_from_a_column_is_that_of_its_row(t_env: TableEnvironment) -> None:
    rows = _rows(
        t_env, "SELECT RAND(s), RAND_INTEGER(s, b) FROM (VALUES (42, 10), (42, CAST(NULL AS INT))) AS v (s, b)"
    )
    assert [tuple(row) for row in rows] == [(0.7275636800328681, 0), (0.7275636800328681, None)]


def test_a_bound_that_is_not_positive_is_refused(t_env: TableEnvironment) -> None:
    with pytest.raises(Exception, match="the bound must be positive"):
        _rows(t_env, "SELECT RAND_INTEGER(b) FROM (VALUES (0)) AS v (b)")


def test_results_have_the_arrow_type_of_the_function() -> None:
    (column,) = Projection([Apply(INT, "RAND_INTEGER", (Lit(INT, 5),))]).columns(Frame([], 3, draws=_draws()))
    assert column.type == pa.int32()


def test_generated_tables_with_the_same_columns_have_different_values(t_env: TableEnvironment) -> None:
    for name in ("one", "other"):
        t_env.execute_sql(f"CREATE TABLE {name} (x BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '50')")
    first, second = ({row[0] for row in _rows(t_env, f"SELECT x FROM {name}")} for name in ("one", "other"))
    assert len(first | second) == 100
