"""Random queries: a stream's final table is DuckDB's answer, and so is what Catalyst computes.

The answers to the first seeds are recorded; beyond them, and to make a failure small, DuckDB itself is asked:
MILLSTREAM_SEED=4711 MILLSTREAM_FUZZ_QUERIES=20000 runs from seed 4711 on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

sys.path.append(str(Path(__file__).parent))

from fuzz_queries import Case, case
from fuzz_runs import by_duckdb, by_millstream, digest, keep, kept, recorded, settled, smaller

FIRST = int(os.environ.get("MILLSTREAM_SEED", "0"))
COUNT = int(os.environ.get("MILLSTREAM_FUZZ_QUERIES", "2000"))
BLOCKS, ON_SPARK = 8, 20
RECORDED = recorded()


def answer(tried: Case, batch: bool) -> Any:
    return by_millstream(settled(tried) if batch else tried, batch=batch)


def compare(name: str, tried: Case, batch: bool) -> None:
    """What is wrong is made small and kept."""
    connection = duckdb.connect()

    def wrong(each: Case) -> bool:
        return answer(each, batch) != by_duckdb(each, connection)

    if wrong(tried):
        small = smaller(tried, wrong)
        keep(small, name)
        found, wanted = answer(small, batch), by_duckdb(small, connection)
        pytest.fail(f"{name}: {small.sql}\n{small.tables}\nfound {found}\nwanted {wanted}")


def check(seed: int, *, batch: bool) -> None:
    tried = case(seed, stream=not batch)
    known = RECORDED["batch" if batch else "stream"]
    if seed < len(known) and digest(answer(tried, batch)) == known[seed]:
        return
    compare(f"seed-{seed}", tried, batch)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_stream_ends_with_the_answer(block: int, inline_engine: None) -> None:
    for seed in range(FIRST + block, FIRST + COUNT, BLOCKS):
        check(seed, batch=False)


def test_what_failed_once_does_not_fail_again(inline_engine: None) -> None:
    for name, tried in kept().items():
        compare(name, tried, batch=False)


@pytest.mark.spark
def test_catalyst_computes_the_answer(spark_context: Any) -> None:
    for seed in range(FIRST, FIRST + ON_SPARK):
        check(seed, batch=True)
