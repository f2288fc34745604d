"""The same tests and figures on every supported version of Spark.

    python tests/matrix/run.py [--quick] [VERSION ...]

Each version has an environment of its own, build/spark-VERSION, with its PySpark; all other packages are those of the
environment that runs this program. The environments are made once (about 450 MB and two minutes each). With --quick,
only a small part of the tests is run, and no figures are taken. The results are printed as a table and written to
build/matrix.json."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
VERSIONS = ("3.5", "4.0", "4.1", "4.2", "4.3")
TESTS = (
    "tests/programs",  # golden programs: to the end, and restored at another parallelism after a kill of the driver
    "tests/spark/test_failures.py::test_a_failure_in_a_worker_does_not_change_the_output",
    "tests/spark/test_batch.py",
    "tests/spark/test_catalyst.py",
    "tests/spark/test_public_api.py",
    "tests/spark/test_slot_tasks.py",
    "tests/spark/test_spark_data.py",
    "tests/cluster_real/test_standalone.py",
)
QUICK_TESTS = (
    "tests/programs/test_three_ways.py::test_program_to_the_end[timers_event_time]",
    "tests/programs/test_three_ways.py::test_program_to_the_end[window_session]",
    "tests/spark/test_batch.py",
    "tests/spark/test_catalyst.py::test_spark_expressions_compute_the_same_as_our_functions",
    "tests/spark/test_catalyst.py::test_batch_and_streaming_have_the_same_final_table[joins]",
    "tests/spark/test_failures.py::test_a_failure_in_a_worker_does_not_change_the_output",
)
FIGURES = {  # names of the parts of trial.py
    "first_job": "first job, s",
    "keyed_state": "keyed state, records/s",
    "epoch": "small epoch, ms",
    "savepoint": "savepoint and restore, s",
    "batch": "batch job, records/s",
    "streaming_sql": "streaming SQL, rows/s",
    "batch_sql": "batch SQL, rows/s",
}


def environment_of(version: str) -> Path:
    """The Python of a version's environment, which is made if it is not there."""
    if importlib.metadata.version("pyspark").startswith(f"{version}."):
        return Path(sys.executable)
    home = REPOSITORY / "build" / f"spark-{version}"
    python, ready = home / "bin" / "python", home / ".ready"
    if not ready.exists():
        print(f"making {home.relative_to(REPOSITORY)}", flush=True)
        venv.create(home, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--timeout", "120"]
        subprocess.run([*pip, f"pyspark=={version}.*"], check=True)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
        # after the packages of the environment itself
        (own / "zz_shared.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        ready.touch()
    return python


def run(python: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in an environment, with millstream from this repository."""
    sources = [REPOSITORY / "src", REPOSITORY / "packages" / "millstream-chaos" / "src"]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}
    return subprocess.run([python, *words], cwd=REPOSITORY, env=variables, text=True, stdout=subprocess.PIPE)


def try_version(version: str, *, quick: bool) -> dict[str, Any]:
    python = environment_of(version)
    spark = run(python, "-c", "import pyspark; print(pyspark.__version__)").stdout.strip()
    begin = time.monotonic()
    # Warnings of an older PySpark: sockets that it leaves to the garbage collector, modules that are deprecated.
    options = ("-q", "-W", "ignore", "-p", "no:cacheprovider", "--timeout", "900", "--tb", "short")
    tests = run(python, "-m", "pytest", *options, *(QUICK_TESTS if quick else TESTS))
    seconds = time.monotonic() - begin
    summary = tests.stdout.strip().splitlines()[-1:]
    if tests.returncode:
        print(tests.stdout, flush=True)
    outcome: dict[str, Any] = {"spark": spark, "passed": tests.returncode == 0, "tests": summary, "seconds": seconds}
    if not quick:
        with tempfile.TemporaryDirectory(prefix="millstream-matrix-") as directory:
            trial = run(python, Path(__file__).with_name("trial.py"), directory)
        outcome["passed"] = outcome["passed"] and trial.returncode == 0
        outcome["figures"] = json.loads(trial.stdout.splitlines()[-1]) if trial.returncode == 0 else {}
    return outcome


def format_table(outcomes: list[dict[str, Any]]) -> str:
    """The outcomes as a Markdown table, with a row for each version."""
    lines = [f"| Spark | tests | {' | '.join(FIGURES.values())} |", f"|---|---|{'---|' * len(FIGURES)}"]
    for outcome in outcomes:
        figures = outcome.get("figures", {})
        cells = [_number(figures[name]) if name in figures else "" for name in FIGURES]
        lines.append(f"| {outcome['spark']} | {' '.join(outcome['tests'])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _number(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"by default {' '.join(VERSIONS)}")
    parser.add_argument("--quick", action="store_true", help="a small part of the tests, and no figures")
    arguments = parser.parse_args()
    outcomes = []
    for version in arguments.versions or VERSIONS:
        print(f"######## Spark {version}", flush=True)
        outcomes.append(try_version(version, quick=arguments.quick))
        print(format_table(outcomes), flush=True)
    results = REPOSITORY / "build" / "matrix.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps(outcomes, indent=2), encoding="utf-8")
    return 0 if all(outcome["passed"] for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
