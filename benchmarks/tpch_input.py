"""TPC-H for every contestant: the tables, the queries, and a digest of the answers.

Promises: standard library only; the tables of a scale are made once, by tpchgen-cli, under .bench; answers that differ
in how they write numbers have one digest.
Does not know: any engine."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.family import Family

REPOSITORY = Path(__file__).resolve().parent.parent
CACHE = REPOSITORY / ".bench"
CASES = REPOSITORY / "tests" / "sql" / "tpch"
QUERIES = {path.stem: path.read_text() for path in sorted((CASES / "queries").glob("q*.sql"))}
_PACKAGE = "tpchgen-cli"
_CENT = Decimal("0.01")


def tables(scale: str) -> Path:
    """The folder with the Parquet files of a scale."""
    folder = CACHE / f"tpch-{scale}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(
            [_generator(), "parquet", "-s", scale, "--output-dir", str(folder)],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (folder / "whole").touch()
    return folder


def _generator() -> str:
    found = shutil.which(_PACKAGE)
    if found is not None:
        return found
    place = CACHE / _PACKAGE
    program = place / "bin" / _PACKAGE
    if not program.exists():
        shutil.rmtree(place, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", _PACKAGE], check=True)
    return str(program)


def check(run: Callable[[str], Sequence[Sequence[Any]]]) -> dict[str, int]:
    """The digest of the answers; `run` plans and runs a query and fetches its rows."""
    return common.digest((name, *map(_plain, row)) for name, text in QUERIES.items() for row in run(text))


def measure(run: Callable[[str], Sequence[Sequence[Any]]], args: argparse.Namespace) -> dict[str, Any]:
    """All queries for as long as it takes to warm up, then once by the clock."""
    chosen = QUERIES if args.queries == "all" else {name: QUERIES[name] for name in args.queries.split(",")}
    began = time.perf_counter()
    while True:
        for text in chosen.values():
            run(text)
        if time.perf_counter() - began >= args.warm_up:
            break
    taken: dict[str, float] = {}
    family = Family(os.getpid())
    used = family.cpu_seconds()
    for name, text in chosen.items():
        started = time.perf_counter()
        run(text)
        taken[name] = round(time.perf_counter() - started, 3)
    used = family.cpu_seconds() - used
    total = sum(taken.values())
    return {"seconds": total, "timed": round(total, 1), "cpu_seconds": round(used, 1), "queries": taken}


def _plain(value: Any) -> str:
    """Numbers in cents, whatever type they have."""
    if isinstance(value, float | Decimal):
        return str(Decimal(value).quantize(_CENT))
    return str(value)
