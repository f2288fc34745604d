"""Nexmark's queries one after another in one engine: how many events a second each of them takes.

Promises: the same files, statements and sizes whichever engine it is; a query that an engine cannot run is named with
the reason, and counts in no mean.
Does not know: the engine; it is handed a way to make a session."""

from __future__ import annotations

import argparse
import hashlib
import math
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.nexmark import files, golden, program
from benchmarks.nexmark.generator import Nexmark

CACHE = Path(__file__).resolve().parents[2] / ".bench" / "nexmark"
CHECKED = ("q3", "q4", "q5", "q16", "q17", "q22")  # whole numbers and texts, which look the same everywhere
MINI_BATCH = 50_000  # as Nexmark publishes it


@dataclass(frozen=True)
class Engine:
    """An engine: how a session is made, the options of q13's side input, and how a query is told to it where it cannot
    be told as it is published."""

    session: Callable[[], Any]
    side_input: Callable[[], str]
    asked: Callable[[str, str], str] = lambda _query, insert: insert


def prepared(engine: Engine, query: str, events: Path, output: Path) -> tuple[Any, str]:
    """A session in which all but the last statement of a query have been made, and that one."""
    env = engine.session()
    program.create_tables(env, program.json_files(events))
    places = {"OUTPUT": str(output), "SIDE_INPUT": engine.side_input()}
    *before, insert = program.statements(query, places)
    for statement in before:
        env.execute_sql(statement)
    return env, engine.asked(query, insert)


def rate(engine: Engine, query: str, args: argparse.Namespace) -> dict[str, Any]:
    """Events a second of one query, and what it cost. The number of events is fixed: files hold them."""
    output = CACHE / "output"

    def run(count: int) -> None:
        shutil.rmtree(output, ignore_errors=True)
        env, insert = prepared(engine, query, inputs(count), output)
        env.execute_sql(insert).wait()

    inputs(args.base), inputs(args.records)
    try:
        return common.rate_of(run, argparse.Namespace(**{**vars(args), "timed": 0.0}))
    finally:
        shutil.rmtree(output, ignore_errors=True)


def inputs(count: int) -> Path:
    """The folder with so many events, in as many files as there are readers."""
    return files.written(CACHE, Nexmark(), count, common.PARALLELISM)


def check(engine: Engine) -> dict[str, int]:
    """The digest of what some queries leave of the recorded input."""
    found = []
    for query in CHECKED:
        env, insert = prepared(engine, query, files.written(CACHE, golden.NEXMARK, golden.EVENTS), CACHE / "output")
        with env.execute_sql(program.selected(insert)).collect() as rows:
            changes = [(_KINDS[row.get_row_kind().value], *map(str, row)) for row in rows]
        found.append(golden.text_of(golden.left(changes)))
    return digest(found)


_KINDS = ("+I", "-U", "+U", "-D")


def digest(texts: Iterable[str]) -> dict[str, int]:
    """The numbers of rows and the checksums at the heads of texts of `golden`, as one digest."""
    heads = ["\n".join(text.split("\n")[:2]) for text in texts]
    rows = sum(int(head.split("\n")[0].rpartition(" ")[2]) for head in heads)
    return {"rows": rows, "digest": int(hashlib.sha256("".join(heads).encode()).hexdigest()[:12], 16)}


def arguments(description: str | None) -> argparse.Namespace:
    """The options of a contestant."""
    return common.arguments(description, base=100_000, records=1_000_000, queries="all", mini_batch=MINI_BATCH)


def measure(engine: Engine, args: argparse.Namespace) -> dict[str, Any]:
    """The rates of the queries (names with commas between, or `all`), and their geometric mean."""
    chosen = program.QUERIES if args.queries == "all" else tuple(args.queries.split(","))
    found: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    for query in chosen:
        try:
            found[query] = rate(engine, query, args)
            print(f"{query}: {found[query]['rate']:,.0f} events/s", flush=True)
        except Exception as problem:
            refused[query] = f"{type(problem).__name__}: {str(problem).strip().splitlines()[-1][:200]}"
            print(f"{query}: {refused[query]}", flush=True)
    counted = [each for query, each in found.items() if query not in NOT_COMPARED] or list(found.values())
    if not counted:
        message = f"no query ran: {refused}"
        raise SystemExit(message)
    return {
        "records": args.records,
        "base": args.base,
        "timed": min(each["timed"] for each in counted),
        "rate": geometric_mean(each["rate"] for each in counted),
        "cpu_us": geometric_mean(each["cpu_us"] for each in counted),
        "queries": {query: each["rate"] for query, each in found.items()},
        "refused": refused,
    }


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean of positive values."""
    logarithms = [math.log(max(value, 1e-9)) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


# Flink has no streaming plan for q6. Its q13 keeps all bids of a regular join, where millstream looks values up.
NOT_COMPARED = ("q6", "q13")
