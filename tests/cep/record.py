"""Records golden cases from the real Flink (needs apache-flink and a JDK):

    python tests/cep/record.py            # with the Python that has apache-flink

Writes tests/golden/cep/automaton.jsonl.gz (random patterns through Flink's automaton, see recorder/Recorder.java) and
tests/golden/cep/sql.json (MATCH_RECOGNIZE through PyFlink's Table API)."""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import cep_cases
import cep_sql

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "cep"


def record_automaton(count: int, jars: str) -> None:
    """Record the results of random patterns in Flink; cases without any result are left out."""
    cases = [cep_cases.create_case(seed) for seed in range(count)]
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", classes, HERE / "recorder/Recorder.java"], check=True)
        process = subprocess.run(
            ["java", "-cp", f"{jars}:{classes}", "Recorder"],
            input="".join(json.dumps(case) + "\n" for case in cases),
            capture_output=True,
            text=True,
            check=True,
        )
    lines = [line for line in process.stdout.splitlines() if line.startswith("{")]
    useful = [line for line in lines if _is_useful(json.loads(line))]
    (GOLDEN / "automaton.jsonl.gz").write_bytes(gzip.compress("\n".join(useful).encode(), mtime=0))
    print(f"{len(useful)} of {len(lines)} cases kept")


def _is_useful(case: dict[str, Any]) -> bool:
    """Return whether a case has results or an intended error of Flink, which a NullPointerException is not."""
    return bool(case.get("out")) or "Malformed" in case.get("error", "") or "skip" in case.get("error", "")


def record_sql() -> None:
    """Record the results of MATCH_RECOGNIZE for the cases of cep_sql.py."""
    from pyflink.common import Row, Types, WatermarkStrategy
    from pyflink.common.watermark_strategy import TimestampAssigner
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.table import Schema, StreamTableEnvironment

    class AtTime(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[3]) * 1000

    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    tables = StreamTableEnvironment.create(environment)
    row_type = Types.ROW_NAMED(["id", "k", "price", "s"], [Types.INT(), Types.STRING(), Types.INT(), Types.INT()])
    rows = environment.from_collection([Row(*event) for event in cep_sql.EVENTS], row_type)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AtTime())
    schema = (
        Schema.new_builder()
        .column_by_metadata("at_time", "TIMESTAMP_LTZ(3)", "rowtime")
        .watermark("at_time", "SOURCE_WATERMARK()")
        .build()
    )
    tables.create_temporary_view("events", rows.assign_timestamps_and_watermarks(strategy), schema)
    rows_by_case = {}
    for case in cep_sql.CASES:
        with tables.execute_sql(case.sql("events")).collect() as results:
            rows_by_case[case.name] = [list(row) for row in results]
        print(case.name, len(rows_by_case[case.name]))
    (GOLDEN / "sql.json").write_text(json.dumps(rows_by_case, indent=1) + "\n")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cases", type=int, default=2_200)
    arguments.add_argument("--only", choices=("automaton", "sql"))
    options = arguments.parse_args()
    import pyflink

    if options.only != "sql":
        record_automaton(options.cases, f"{Path(pyflink.__file__).parent}/lib/*")
    if options.only != "automaton":
        record_sql()
    sys.exit(0)
