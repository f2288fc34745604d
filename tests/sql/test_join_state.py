"""A join of tables that grow keeps the same in memory and on disk: what it tells depends neither on that, nor on how
often it dies, with how many subtasks it goes on, and how its state was written."""

from __future__ import annotations

import ast
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from simulated_restarts import dies_after
from sql_cases import as_text

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


def table(seeded: random.Random) -> Table:
    keys = [None, *(f"key {i}" for i in range(seeded.choice((2, 9))))]
    return [
        (seeded.choice(keys), seeded.choice([None, *range(12)]), place, "x" * seeded.randrange(600))
        for place in range(seeded.randrange(100, 160))
    ]


def program(condition: str, one: Table, other: Table) -> Any:
    def made(env: StreamExecutionEnvironment) -> DataStream:
        tables = StreamTableEnvironment.create(env)
        for name, rows in (("one", one), ("other", other)):
            register_values(name, rows)
            tables.execute_sql(
                f"CREATE TEMPORARY TABLE {name} (k STRING, n INT, v BIGINT, w STRING) "
                f"WITH ('connector' = 'values', 'data-id' = '{name}')"
            )
        found = tables.sql_query(f"SELECT one.*, other.* FROM one JOIN other ON {condition}")
        return tables.to_changelog_stream(found).map(as_text(found._plan.schema), Types.PICKLED_BYTE_ARRAY())

    return made


def told(lives: list[Setup], faults: Faults) -> Counter[tuple[str, ...]]:
    """All changes that the lives of a job tell, each of which but the last dies."""
    with World() as world:
        for setup in lives[:-1]:
            assert run(setup, world, faults, listen=dies_after(5)).crashed
        life = run(lives[-1], world, faults)
        assert life.status is JobStatus.FINISHED, life.failure
        return Counter(tuple(ast.literal_eval(each)) for each in world.visible())


def expected(condition: str, one: Table, other: Table) -> Counter[tuple[str, ...]]:
    by = {"one.k = other.k": 0, "one.n = other.n": 1}
    keys = [place for text, place in by.items() if text in condition]
    found: Counter[tuple[str, ...]] = Counter()
    for left in one:
        for right in other:
            equal = all(left[i] is not None and left[i] == right[i] for i in keys)
            if equal and ("<" not in condition or left[2] < right[2]):
                found[("+I", *("<NULL>" if value is None else str(value) for value in (*left, *right)))] += 1
    return found


def often(lineage: Lineage) -> Compaction | None:
    """Parts of a base, one file of several, and changes in turn."""
    if lineage.restored:
        return 0
    return (None, Rewrite(1, rows=2), max(1, len(lineage.bases)), Rewrite(2, rows=1))[len(lineage.own) % 4]


@pytest.mark.parametrize("seed", range(6))
def test_a_join_tells_the_same_in_memory_and_on_disk(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seeded = random.Random(seed)
    monkeypatch.setattr(lmdb, "_LARGE", 4096)  # so that runs are read where they lie
    monkeypatch.setattr(row_runs, "_RUNS_TO_MERGE", seeded.choice((2, 3, 8)))
    monkeypatch.setattr(progress, "_compaction", often)
    condition, one, other = CONDITIONS[seed % 3], table(seeded), table(seeded)
    setup = Setup(program(condition, one, other), epoch_records=6, block_records=4, checkpoint_every=1)
    lives = [
        replace(setup, backend=seeded.choice(("lmdb", "lmdb", "hashmap")), parallelism=seeded.choice((1, 2, 3)))
        for _ in range(seeded.choice((2, 3)))
    ]
    faults = Faults(forget=0.3, attempts=seeded.choice(("once", "twice", "broken")), seed=seed)
    wanted = expected(condition, one, other)
    assert told([replace(setup, backend="lmdb")], Faults()) == wanted
    assert told(lives, faults) == wanted, [(life.backend, life.parallelism) for life in lives]


def test_rows_move_between_runs_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that only grew may change after an alteration of the program, and the other way round."""
    seeded = random.Random(1)
    one, other = table(seeded), table(seeded)
    setup = Setup(program(CONDITIONS[1], one, other), epoch_records=12, checkpoint_every=1, backend="lmdb")
    with World() as world:
        for grows in (True, False, True):
            monkeypatch.setattr(join, "can_compare_keys", lambda *_, answer=grows: answer)
            assert run(setup, world, listen=dies_after(1)).crashed
        life = run(setup, world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert Counter(tuple(ast.literal_eval(each)) for each in world.visible()) == expected(CONDITIONS[1], one, other)
