"""A join of insert-only tables emits the same changes with state in memory and on disk, also after crashes, after
changes of parallelism, and for all forms of stored state."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from simulated_restarts import fail_after
from sql_cases import create_row_formatter

from millstream.cluster import progress
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.data_stream import DataStream
from millstream.job.job_status import JobStatus
from millstream.sql.connectors.simple import register_values
from millstream.sql.operators import row_runs
from millstream.sql.operators.join import regular_join as join
from millstream.state import lmdb
from millstream.state.compaction import Compaction, Rewrite
from millstream.state.handles import Lineage
from millstream.table import StreamTableEnvironment
from millstream.types.factory import Types
from millstream_chaos.simulation import Faults, Setup, World, run

Table = list[tuple[str | None, int | None, int, str]]
CONDITIONS = ("one.n = other.n", "one.k = other.k AND one.n = other.n", "one.k = other.k AND one.v < other.v")


def table(rng: random.Random) -> Table:
    keys = [None, *(f"key {i}" for i in range(rng.choice((2, 9))))]
    return [
        (rng.choice(keys), rng.choice([None, *range(12)]), index, "x" * rng.randrange(600))
        for index in range(rng.randrange(100, 160))
    ]


def program(condition: str, left_table: Table, right_table: Table) -> Any:
    def define(env: StreamExecutionEnvironment) -> DataStream:
        tables = StreamTableEnvironment.create(env)
        for name, rows in (("one", left_table), ("other", right_table)):
            register_values(name, rows)
            tables.execute_sql(
                f"CREATE TEMPORARY TABLE {name} (k STRING, n INT, v BIGINT, w STRING) "
                f"WITH ('connector' = 'values', 'data-id' = '{name}')"
            )
        joined = tables.sql_query(f"SELECT one.*, other.* FROM one JOIN other ON {condition}")
        return tables.to_changelog_stream(joined).map(
            create_row_formatter(joined._plan.schema), Types.PICKLED_BYTE_ARRAY()
        )

    return define


def run_all(setups: list[Setup], faults: Faults) -> Counter[tuple[str, ...]]:
    """Return all changes that a job emits over several runs, each of which except the last fails."""
    with World() as world:
        for setup in setups[:-1]:
            assert run(setup, world, faults, listen=fail_after(5)).crashed
        result = run(setups[-1], world, faults)
        assert result.status is JobStatus.FINISHED, result.failure
        return Counter(tuple(ast.literal_eval(each)) for each in world.visible())


def expected(condition: str, left_table: Table, right_table: Table) -> Counter[tuple[str, ...]]:
    by = {"one.k = other.k": 0, "one.n = other.n": 1}
    keys = [index for text, index in by.items() if text in condition]
    joined: Counter[tuple[str, ...]] = Counter()
    for left_row in left_table:
        for right in right_table:
            equal = all(left_row[i] is not None and left_row[i] == right[i] for i in keys)
            if equal and ("<" not in condition or left_row[2] < right[2]):
                joined[("+I", *("<NULL>" if value is None else str(value) for value in (*left_row, *right)))] += 1
    return joined


def compact_in_turn(lineage: Lineage) -> Compaction | None:
    """Compact in turn to parts of a base, to one file for several, and not at all."""
    if lineage.restored:
        return 0
    return (None, Rewrite(1, rows=2), max(1, len(lineage.bases)), Rewrite(2, rows=1))[len(lineage.own) % 4]


@pytest.mark.parametrize("seed", range(6))
def test_a_join_emits_the_same_changes_in_memory_and_on_disk(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(lmdb, "_LARGE", 4096)  # so that runs are read from the memory-mapped file
    monkeypatch.setattr(row_runs, "_RUNS_TO_MERGE", rng.choice((2, 3, 8)))
    monkeypatch.setattr(progress, "_compaction", compact_in_turn)
    condition, left_table, right_table = CONDITIONS[seed % 3], table(rng), table(rng)
    setup = Setup(program(condition, left_table, right_table), epoch_records=6, block_records=4, checkpoint_every=1)
    setups = [
        replace(setup, backend=rng.choice(("lmdb", "lmdb", "hashmap")), parallelism=rng.choice((1, 2, 3)))
        for _ in range(rng.choice((2, 3)))
    ]
    faults = Faults(forget=0.3, attempts=rng.choice(("once", "twice", "broken")), seed=seed)
    expected_changes = expected(condition, left_table, right_table)
    assert run_all([replace(setup, backend="lmdb")], Faults()) == expected_changes
    assert run_all(setups, faults) == expected_changes, [(result.backend, result.parallelism) for result in setups]


def test_rows_move_between_runs_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the program, an insert-only table may have updates, or an updating table may have none."""
    rng = random.Random(1)
    left_table, right_table = table(rng), table(rng)
    setup = Setup(program(CONDITIONS[1], left_table, right_table), epoch_records=12, checkpoint_every=1, backend="lmdb")
    with World() as world:
        for grows in (True, False, True):
            monkeypatch.setattr(join, "can_compare_keys", lambda *_, can_compare=grows: can_compare)
            assert run(setup, world, listen=fail_after(1)).crashed
        result = run(setup, world)
        assert result.status is JobStatus.FINISHED, result.failure
        assert Counter(tuple(ast.literal_eval(each)) for each in world.visible()) == expected(
            CONDITIONS[1], left_table, right_table
        )
