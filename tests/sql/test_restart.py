"""A crash and a change of parallelism do not change the final table of any query.

Every recorded query is run in small epochs, dies after a checkpoint, goes on with other subtasks, dies again, and goes
to its end. MILLSTREAM_SQL_RESTARTS=all runs every query with all configurations, otherwise each query runs with one."""

from __future__ import annotations

import ast
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from simulated_restarts import fail_after
from sql_cases import GOLDEN, add_tables, content, create_row_formatter, materialize

from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.data_stream import DataStream
from millstream.job.job_status import JobStatus
from millstream.table import StreamTableEnvironment
from millstream.types.factory import Types
from millstream_chaos.simulation import Faults, Setup, World, run


@dataclass(frozen=True)
class RunConfiguration:
    """A configuration: the parallelism of each run, and the injected faults."""

    parallelism: tuple[int, ...]
    records: int
    faults: Faults = field(default_factory=Faults)
    backend: str = "hashmap"
    mini_batch: bool = False


CONFIGURATIONS = (
    RunConfiguration((2, 3), 2, Faults(forget=0.3, seed=1)),
    RunConfiguration((3, 1), 3, Faults(attempts="twice")),
    RunConfiguration((1, 2, 3), 2, mini_batch=True),
    RunConfiguration((3, 2), 1, Faults(attempts="broken", seed=4), backend="lmdb"),
)
QUERIES = [
    (path.stem, query)
    for path in sorted(GOLDEN.glob("*.yaml"))
    for query in content(path.stem).get("queries", [])
    if "changelog" in query
]
EVERY = os.environ.get("MILLSTREAM_SQL_RESTARTS") == "all"
CASES = [
    pytest.param(topic, query, configuration, id=f"{topic}-{query['name']}-{number}")
    for topic, query in QUERIES
    for number, configuration in enumerate(CONFIGURATIONS)
    if EVERY or zlib.crc32(query["name"].encode()) % len(CONFIGURATIONS) == number
]


def program(case: dict[str, Any], sql: str, options: dict[str, str]) -> Callable[[StreamExecutionEnvironment], Any]:
    def define(env: StreamExecutionEnvironment) -> DataStream:
        tables = add_tables(StreamTableEnvironment.create(env), case, options)
        table = tables.sql_query(sql)
        format_row = create_row_formatter(table._plan.schema)
        return tables.to_changelog_stream(table).map(format_row, Types.PICKLED_BYTE_ARRAY())

    return define


@pytest.mark.parametrize(("topic", "query", "configuration"), CASES)
def test_a_crash_and_a_change_of_parallelism_do_not_change_the_final_table(
    topic: str, query: dict[str, Any], configuration: RunConfiguration
) -> None:
    options = {"table.exec.mini-batch.enabled": "true"} if configuration.mini_batch else {}
    setup = Setup(
        program(content(topic), query["sql"], options),
        epoch_records=configuration.records,
        checkpoint_every=1,
        backend=configuration.backend,
    )
    with World() as world:
        for parallelism in configuration.parallelism[:-1]:
            result = run(replace(setup, parallelism=parallelism), world, configuration.faults, listen=fail_after(2))
            if not result.crashed:  # the input was too short for a crash
                break
        if result.crashed:
            result = run(replace(setup, parallelism=configuration.parallelism[-1]), world, configuration.faults)
        assert result.status is JobStatus.FINISHED, result.failure
        rows = list(map(ast.literal_eval, world.visible()))
    assert materialize(rows) == materialize(query["changelog"])
