"""Record golden files again: one command for all families.

    python tests/record.py                          # lists the families
    python tests/record.py plans
    python tests/record.py sql --python INTERPRETER joins windows
    python tests/record.py all --python INTERPRETER

INTERPRETER is a Python with apache-flink 2.3.0, which most families are recorded from; the plans of millstream and the
answers of DuckDB are recorded with this one. Words after the family go to its recorder. Golden state (below
tests/golden: compiled_plans, disks, savepoints) is not recorded again: an older release wrote it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Family:
    """Golden files that one script writes."""

    script: str
    golden: str
    of_flink: bool = True


FAMILIES = {
    "api": Family("compat/record_api.py", "golden/api.json"),
    "assignments": Family("sql/record_assignments.py", "golden/sql/ends/assignments.json"),
    "cep": Family("cep/record.py", "golden/cep"),
    "date-patterns": Family("sql/record_date_patterns.py", "golden/sql/ends/date_patterns.json"),
    "ends": Family("sql/record_ends.py", "golden/sql/ends/changelogs.yaml"),
    "expressions": Family("sql/record_expressions.py", "golden/sql/ends/expressions.json"),
    "formats": Family("formats/record.py", "golden/formats"),
    "nexmark": Family("../benchmarks/nexmark/record.py", "golden/nexmark"),
    "overwrites": Family("sql/record_overwrites.py", "golden/sql/ends/overwrites.yaml"),
    "plans": Family("plans/record.py", "plans", of_flink=False),
    "programs": Family("compat/record.py", "golden/programs"),
    "random-queries": Family("sql/fuzz/record.py", "golden/random_queries/answers.json", of_flink=False),
    "sql": Family("sql/record.py", "golden/sql"),
    "texts": Family("sql/record_texts.py", "golden/sql/ends/texts.yaml"),
    "tpch": Family("sql/tpch/record.py", "golden/tpch", of_flink=False),
}
OF_OLDER_RELEASES = ("golden/compiled_plans/record.py", "golden/disks/record.py", "golden/savepoints/record.py")


def main() -> int:
    """Run the recorders of the families that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", nargs="?", choices=["all", *FAMILIES])
    parser.add_argument("--python", help="a Python with apache-flink 2.3.0")
    parser.add_argument("words", nargs="*", help="arguments of the recorder")
    arguments = parser.parse_intermixed_args()
    if arguments.family is None:
        for name, family in FAMILIES.items():
            print(f"{name:16}tests/{family.golden}{' (of Flink)' if family.of_flink else ''}")
        return 0
    for name in FAMILIES if arguments.family == "all" else [arguments.family]:
        family = FAMILIES[name]
        if family.of_flink and arguments.python is None:
            parser.error(f"{name} is recorded from Flink: give --python")
        python = arguments.python if family.of_flink else sys.executable
        status = subprocess.run([python, str(HERE / family.script), *arguments.words], check=False).returncode
        if status != 0:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
