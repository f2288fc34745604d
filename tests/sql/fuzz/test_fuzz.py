"""Random queries: a stream's final table, what Catalyst computes and DuckDB's answer are the same.

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
from fuzz_runs import Answer, by_duckdb, by_millstream, digest, keep, kept, recorded, settled, smaller

FIRST = int(os.environ.get("MILLSTREAM_SEED", "0"))
COUNT = int(os.environ.get("MILLSTREAM_FUZZ_QUERIES", "150"))
BLOCKS, WHOLE_JOBS = 8, 20
RECORDED = recorded()


def compare(name: str, tried: Case, answer: Callable[[Case], Answer]) -> None:
    """What is wrong is made small and kept."""
    connection = duckdb.connect()

    def wrong(each: Case) -> bool:
        return answer(each) != by_duckdb(each, connection)

    if wrong(tried):
        small = smaller(tried, wrong)
        keep(small, name)
        found, wanted = answer(small), by_duckdb(small, connection)
        pytest.fail(f"{name}: {small.sql}\n{small.tables}\nfound {found}\nwanted {wanted}")


def check(seed: int, form: str, answer: Callable[[Case], Answer]) -> None:
    tried = case(seed, stream=form == "stream")
    known = RECORDED[form]
    if seed < len(known) and digest(answer(tried)) == known[seed]:
        return
    compare(f"{form}-{seed}", tried, answer)


def by_batch_job(tried: Case) -> Answer:
    return by_millstream(settled(tried), batch=True)


@pytest.fixture(scope="module")
def catalyst(spark_context: Any) -> Any:
    from fuzz_catalyst import Catalyst  # here, so that the others run without Spark

    return Catalyst(spark_context)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_a_stream_ends_with_the_answer(block: int, inline_engine: None) -> None:
    for seed in range(FIRST + block, FIRST + COUNT, BLOCKS):
        check(seed, "stream", by_millstream)


def test_what_failed_once_does_not_fail_again(inline_engine: None) -> None:
    for name, tried in kept().items():
        compare(name, tried, by_millstream)


@pytest.mark.spark
@pytest.mark.parametrize("block", range(BLOCKS))
def test_catalyst_computes_the_answer(block: int, catalyst: Any) -> None:
    for seed in range(FIRST + block, FIRST + COUNT, BLOCKS):
        check(seed, "stream", catalyst.answer)


@pytest.mark.spark
def test_catalyst_computes_the_answer_without_groups(catalyst: Any) -> None:
    for seed in range(FIRST, FIRST + COUNT // 12):
        check(seed, "batch", catalyst.answer)


@pytest.mark.spark
def test_what_failed_once_does_not_fail_again_on_catalyst(catalyst: Any) -> None:
    for name, tried in kept().items():
        compare(name, tried, catalyst.answer)


@pytest.mark.spark
def test_a_batch_job_ends_with_the_answer(spark_context: Any) -> None:
    for seed in range(FIRST, FIRST + WHOLE_JOBS):
        check(seed, "batch", by_batch_job)
