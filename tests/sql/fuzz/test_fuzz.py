"""Random queries: the final table of a stream, the result of Catalyst and the result of DuckDB are equal.

The answers to the first seeds are recorded; beyond them, and to make a failure small, DuckDB itself is asked:
MILLSTREAM_SEED=4711 MILLSTREAM_FUZZ_QUERIES=20000 runs from seed 4711 on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

sys.path.append(str(Path(__file__).parent))

from fuzz_queries import Case, case
from fuzz_runs import (
    Result,
    compute_digest,
    load_saved_cases,
    read_recorded,
    reduce_case,
    remove_retractions,
    run_duckdb,
    run_millstream,
    save_case,
)

FIRST = int(os.environ.get("MILLSTREAM_SEED", "0"))
COUNT = int(os.environ.get("MILLSTREAM_FUZZ_QUERIES", "150"))
BLOCKS, WHOLE_JOBS = 8, 20
RECORDED = read_recorded()


def compare(name: str, tried_case: Case, run: Callable[[Case], Result]) -> None:
    """Compare the result of a case with DuckDB's; reduce and save a case that differs."""
    connection = duckdb.connect()

    def is_wrong(candidate: Case) -> bool:
        return run(candidate) != run_duckdb(candidate, connection)

    if is_wrong(tried_case):
        small = reduce_case(tried_case, is_wrong)
        save_case(small, name)
        actual, expected = run(small), run_duckdb(small, connection)
        pytest.fail(f"{name}: {small.sql}\n{small.tables}\nfound {actual}\nwanted {expected}")


def check(seed: int, mode: str, run: Callable[[Case], Result]) -> None:
    tried_case = case(seed, stream=mode == "stream")
    known = RECORDED[mode]
    if seed < len(known) and compute_digest(run(tried_case)) == known[seed]:
        return
    compare(f"{mode}-{seed}", tried_case, run)


def run_batch_job(tried_case: Case) -> Result:
    return run_millstream(remove_retractions(tried_case), batch=True)


@pytest.fixture(scope="module")
def catalyst(spark_context: Any) -> Any:
    from fuzz_catalyst import Catalyst  # imported here, so that the other tests run without Spark

    return Catalyst(spark_context)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_final_table_of_a_stream_is_duckdbs_result(block: int, inline_engine: None) -> None:
    for seed in range(FIRST + block, FIRST + COUNT, BLOCKS):
        check(seed, "stream", run_millstream)


def test_saved_cases_do_not_fail(inline_engine: None) -> None:
    for name, tried_case in load_saved_cases().items():
        compare(name, tried_case, run_millstream)


@pytest.mark.spark
@pytest.mark.parametrize("block", range(BLOCKS))
def test_catalyst_computes_duckdbs_result(block: int, catalyst: Any) -> None:
    for seed in range(FIRST + block, FIRST + COUNT, BLOCKS):
        check(seed, "stream", catalyst.run)


@pytest.mark.spark
def test_catalyst_computes_duckdbs_result_without_groups(catalyst: Any) -> None:
    for seed in range(FIRST, FIRST + COUNT // 12):
        check(seed, "batch", catalyst.run)


@pytest.mark.spark
def test_saved_cases_do_not_fail_on_catalyst(catalyst: Any) -> None:
    for name, tried_case in load_saved_cases().items():
        compare(name, tried_case, catalyst.run)


@pytest.mark.spark
def test_a_batch_job_computes_duckdbs_result(spark_context: Any) -> None:
    for seed in range(FIRST, FIRST + WHOLE_JOBS):
        check(seed, "batch", run_batch_job)
