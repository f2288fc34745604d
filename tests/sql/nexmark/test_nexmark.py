"""Nexmark's queries have the same results as in Flink, also after a restart with another parallelism.

The results of Flink were recorded by benchmarks/nexmark/record.py."""

from __future__ import annotations

import ast
import csv
import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from benchmarks.nexmark import files, golden, program
from simulated_restarts import fail_after
from sql_cases import create_row_formatter

from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.data_stream import DataStream
from millstream.job.job_status import JobStatus
from millstream.sql.connectors.simple import register_values
from millstream.table import DataTypes, EnvironmentSettings, StreamTableEnvironment, TableEnvironment
from millstream.table.udf import udf
from millstream.types.factory import Types
from millstream_chaos.simulation import Setup, World, run

ALL = (*program.QUERIES, *program.PATTERNS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nexmark")


def create_tables(env: TableEnvironment, query: str, folder: Path) -> str:
    """Create the tables of a query, and return the query."""
    env.get_config().set("table.local-time-zone", "UTC")
    program.create_tables(env, program.json_files(files.written(folder, golden.NEXMARK, golden.events(query))))
    env.create_temporary_function("count_char", udf(program.count_char, result_type=DataTypes.BIGINT()))
    register_values("nexmark_side_input", program.SIDE_ROWS)
    paths = {"OUTPUT": str(folder / "output"), "SIDE_INPUT": program.OFFERED}
    *before, insert = program.statements(query, paths)
    for statement in before:
        env.execute_sql(statement)
    return program.selected(insert)


def format_result(query: str, changelog: Iterable[Sequence[str]]) -> str:
    """Return the final rows of a query as text; the counts of q12 are summed over windows, which depend on the
    clock."""
    lines = golden.left(changelog)
    if query == "q12":
        counts: Counter[str] = Counter()
        for bidder, count, *_ in (line.split("|") for line in lines):
            counts[bidder] += int(count)
        lines = sorted(f"{bidder}|{count}" for bidder, count in counts.items())
    return golden.text_of(lines)


def read_recorded(query: str) -> str:
    return (golden.FOLDER / f"{query}.txt").read_text()


@pytest.mark.parametrize("query", ALL)
def test_a_query_has_the_result_of_flink(query: str, folder: Path, inline_engine: None) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    result = env.execute_sql(create_tables(env, query, folder))
    with result.collect() as rows:
        changelog = list(map(create_row_formatter(result._get_row_type()), rows))
    assert format_result(query, changelog) == read_recorded(query)


@pytest.mark.parametrize("query", ALL)
def test_a_restart_with_another_parallelism_does_not_change_the_result(query: str, folder: Path) -> None:
    def define(env: StreamExecutionEnvironment) -> DataStream:
        tables = StreamTableEnvironment.create(env)
        tables.get_config().set("table.exec.mini-batch.enabled", "true")
        table = tables.sql_query(create_tables(tables, query, folder))
        return tables.to_changelog_stream(table).map(
            create_row_formatter(table._plan.schema), Types.PICKLED_BYTE_ARRAY()
        )

    setup = Setup(define, epoch_records=golden.events(query) // 4, block_records=400, checkpoint_every=1)
    with World() as world:
        first = run(setup, world, listen=fail_after(2))
        assert first.crashed
        second = run(replace(setup, parallelism=3), world)
        assert second.status is JobStatus.FINISHED, second.failure
        changelog = list(map(ast.literal_eval, world.visible()))
    assert format_result(query, changelog) == read_recorded(query)


@pytest.mark.spark
@pytest.mark.usefixtures("spark_context")
def test_q10_writes_its_files_on_spark(tmp_path: Path) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "2")
    create_tables(env, "q10", tmp_path)
    *_, insert = program.statements("q10", {"OUTPUT": str(tmp_path / "output"), "SIDE_INPUT": program.OFFERED})
    env.execute_sql(insert).wait()
    lines = []
    folders = [folder for day in (tmp_path / "output").iterdir() for folder in day.iterdir()]
    for folder in folders:
        partition = [unquote(part.partition("=")[2]) for part in (folder.parent.name, folder.name)]
        assert (folder / "_SUCCESS").exists()
        for file in folder.glob("[!_.]*"):
            for auction, bidder, price, at, extra in csv.reader(file.read_text().splitlines()):
                moment = datetime.datetime.fromisoformat(at).isoformat(" ", "milliseconds")
                lines.append("|".join((auction, bidder, price, moment, extra, *partition)))
    assert len(folders) == 2
    assert golden.text_of(sorted(lines)) == read_recorded("q10")
