"""Nexmark's queries one after another in one engine: how many events a second each of them takes.

Promises: the same files, statements and sizes whichever engine it is; a query that an engine cannot run is named with
the reason, and counts in no mean.
Does not know: the engine; it is handed a way to make a session."""

from __future__ import annotations

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
CHECKED = ("q4", "q5", "q17")  # whole numbers and texts, which look the same everywhere
MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
}


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


def rate(engine: Engine, query: str, base: int, records: int) -> float:
    """Events a second of one query."""
    output = CACHE / "output"

    def run(count: int) -> None:
        shutil.rmtree(output, ignore_errors=True)
        env, insert = prepared(engine, query, inputs(count), output)
        env.execute_sql(insert).wait()

    inputs(base), inputs(records)
    try:
        return float(common.rate_of(run, base, records)["rate"])
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
    return _digest(found)


def expected() -> dict[str, int]:
    """What `check` must give: what was recorded."""
    return _digest((golden.FOLDER / f"{query}.txt").read_text() for query in CHECKED)


_KINDS = ("+I", "-U", "+U", "-D")


def _digest(texts: Iterable[str]) -> dict[str, int]:
    heads = ["\n".join(text.split("\n")[:2]) for text in texts]
    rows = sum(int(head.split("\n")[0].rpartition(" ")[2]) for head in heads)
    return {"rows": rows, "digest": int(hashlib.sha256("".join(heads).encode()).hexdigest()[:12], 16)}


def measure(engine: Engine, base: int, records: int, queries: str) -> dict[str, Any]:
    """The rates of the queries (names with commas between, or `all`), and their geometric mean."""
    chosen = program.QUERIES if queries == "all" else tuple(queries.split(","))
    rates: dict[str, float] = {}
    refused: dict[str, str] = {}
    for query in chosen:
        try:
            rates[query] = rate(engine, query, base, records)
            print(f"{query}: {rates[query]:,.0f} events/s", flush=True)
        except Exception as problem:
            refused[query] = f"{type(problem).__name__}: {str(problem).strip().splitlines()[-1][:200]}"
            print(f"{query}: {refused[query]}", flush=True)
    common_rates = [value for query, value in rates.items() if query not in NO_PEER]
    mean = math.exp(sum(map(math.log, common_rates)) / max(len(common_rates), 1)) if common_rates else 0.0
    return {"records": records, "base": base, "rate": mean, "queries": rates, "refused": refused}


NO_PEER = ("q6",)  # Flink has no streaming plan for it, so no mean has it
