"""A crash, and another parallelism after it, do not show in any query's final table.

Every recorded query is run in small epochs, dies after a checkpoint, goes on with other subtasks, dies again, and goes
on to its end. MILLSTREAM_SQL_RESTARTS=all runs each of them in every way, otherwise each is run in one."""

from __future__ import annotations

import ast
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from simulated_restarts import dies_after
from sql_cases import GOLDEN, as_text, content, furnished, materialised

from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.data_stream import DataStream
from millstream.job.job_status import JobStatus
from millstream.table import StreamTableEnvironment
from millstream.types.factory import Types
from millstream_chaos.simulation import Faults, Setup, World, run


@dataclass(frozen=True)
class Way:
    """How a query is run: its parallelism in each life, and what is hostile on the way."""

    parallelism: tuple[int, ...]
    records: int
    faults: Faults = field(default_factory=Faults)
    backend: str = "hashmap"
    mini_batch: bool = False


WAYS = (
    Way((2, 3), 2, Faults(forget=0.3, seed=1)),
    Way((3, 1), 3, Faults(attempts="twice")),
    Way((1, 2, 3), 2, mini_batch=True),
    Way((3, 2), 1, Faults(attempts="broken", seed=4), backend="lmdb"),
)
QUERIES = [
    (path.stem, query)
    for path in sorted(GOLDEN.glob("*.yaml"))
    for query in content(path.stem).get("queries", [])
    if "changelog" in query
]
EVERY = os.environ.get("MILLSTREAM_SQL_RESTARTS") == "all"
CASES = [
    pytest.param(topic, query, way, id=f"{topic}-{query['name']}-{number}")
    for topic, query in QUERIES
    for number, way in enumerate(WAYS)
    if EVERY or zlib.crc32(query["name"].encode()) % len(WAYS) == number
]


def program(case: dict[str, Any], sql: str, options: dict[str, str]) -> Callable[[StreamExecutionEnvironment], Any]:
    def made(env: StreamExecutionEnvironment) -> DataStream:
        tables = furnished(StreamTableEnvironment.create(env), case, options)
        table = tables.sql_query(sql)
        shown = as_text(table._plan.schema)
        return tables.to_changelog_stream(table).map(shown, Types.PICKLED_BYTE_ARRAY())

    return made


@pytest.mark.parametrize(("topic", "query", "way"), CASES)
def test_a_restart_and_another_parallelism_do_not_show(topic: str, query: dict[str, Any], way: Way) -> None:
    options = {"table.exec.mini-batch.enabled": "true"} if way.mini_batch else {}
    setup = Setup(
        program(content(topic), query["sql"], options),
        epoch_records=way.records,
        checkpoint_every=1,
        backend=way.backend,
    )
    with World() as world:
        for parallelism in way.parallelism[:-1]:
            life = run(replace(setup, parallelism=parallelism), world, way.faults, listen=dies_after(2))
            if not life.crashed:  # the input was too short to die in the middle of it
                break
        if life.crashed:
            life = run(replace(setup, parallelism=way.parallelism[-1]), world, way.faults)
        assert life.status is JobStatus.FINISHED, life.failure
        rows = list(map(ast.literal_eval, world.visible()))
    assert materialised(rows) == materialised(query["changelog"])
