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
    """What Flink makes of random patterns; those with no result at all are left out."""
    given = [cep_cases.case(seed) for seed in range(count)]
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-nowarn", "-cp", jars, "-d", classes, HERE / "recorder/Recorder.java"], check=True)
        done = subprocess.run(
            ["java", "-cp", f"{jars}:{classes}", "Recorder"],
            input="".join(json.dumps(each) + "\n" for each in given),
            capture_output=True,
            text=True,
            check=True,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    kept = [line for line in lines if _telling(json.loads(line))]
    (GOLDEN / "automaton.jsonl.gz").write_bytes(gzip.compress("\n".join(kept).encode(), mtime=0))
    print(f"{len(kept)} of {len(lines)} cases kept")


def _telling(given: dict[str, Any]) -> bool:
    """Results, or an error that Flink means; a NullPointerException is none."""
    return bool(given.get("out")) or "Malformed" in given.get("error", "") or "skip" in given.get("error", "")


def record_sql() -> None:
    """What MATCH_RECOGNIZE gives for the cases of cep_sql.py."""
    from pyflink.common import Row, Types, WatermarkStrategy
    from pyflink.common.watermark_strategy import TimestampAssigner
    from pyflink.datastream import StreamExecutionEnvironment
    from pyflink.table import Schema, StreamTableEnvironment

    class AtTime(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[3]) * 1000

    environment = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    tables = StreamTableEnvironment.create(environment)
    kinds = Types.ROW_NAMED(["id", "k", "price", "s"], [Types.INT(), Types.STRING(), Types.INT(), Types.INT()])
    rows = environment.from_collection([Row(*event) for event in cep_sql.EVENTS], kinds)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(AtTime())
    schema = (
        Schema.new_builder()
        .column_by_metadata("at_time", "TIMESTAMP_LTZ(3)", "rowtime")
        .watermark("at_time", "SOURCE_WATERMARK()")
        .build()
    )
    tables.create_temporary_view("events", rows.assign_timestamps_and_watermarks(strategy), schema)
    found = {}
    for each in cep_sql.CASES:
        with tables.execute_sql(each.sql("events")).collect() as results:
            found[each.name] = [list(row) for row in results]
        print(each.name, len(found[each.name]))
    (GOLDEN / "sql.json").write_text(json.dumps(found, indent=1) + "\n")


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
