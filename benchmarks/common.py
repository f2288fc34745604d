"""What every contestant shares: the input, the digest of an output, and the line a contestant answers with.

Promises: standard library only, so that it imports in every peer's environment; an index gives the same record
everywhere.
Does not know: any engine, how contestants are started, or what is compared with what."""

from __future__ import annotations

import argparse
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.family import Family

KEYS = 100_000
AMOUNTS = 100
WINDOW_MS = 600_000
PARALLELISM = 2
CHECK_RECORDS = 20_000
CHECK_WINDOW_MS = 1_000
CHECK_KEYS = 1_000
CEP_KEYS = 50_000
CEP_WITHIN_MS = 300_000
CEP_CHECK_RECORDS = 100_000
CEP_CHECK_KEYS = 1_000
TINY_BELOW, LARGE_FROM = 20, 60  # a tiny payment, one in between, a large one
RESULT_MARK = "BENCHMARK-RESULT "

# Cubing permutes the integers modulo a prime p with p % 3 == 2. So keys come in an irregular order, each equally often,
# and every engine, SQL included, computes them exactly with 64-bit integers.
PERIOD = 1_000_037
_RESIDUE = f"MOD(i, CAST({PERIOD} AS BIGINT))"
KEY_SQL = f"MOD(MOD({_RESIDUE} * {_RESIDUE} * {_RESIDUE}, CAST({PERIOD} AS BIGINT)), CAST({KEYS} AS BIGINT))"
AMOUNT_SQL = f"MOD(i, CAST({AMOUNTS} AS BIGINT))"


def random_key_sql(keys: int) -> str:
    """A random key of Flink SQL: a number, which costs less to make than `KEY_SQL`."""
    return f"CAST(RAND_INTEGER({keys}) AS BIGINT)"


def key_of(index: int) -> int:
    """The integer key of record `index`; `KEY_SQL` is the same formula over a column `i`."""
    residue = index % PERIOD
    return residue * residue * residue % PERIOD % KEYS


def string_key(key: int) -> str:
    """The key as the keyed benchmark has it."""
    return f"user-{key}"


def amount_of(index: int) -> int:
    """The amount of record `index`; `AMOUNT_SQL` is the same formula over a column `i`."""
    return index % AMOUNTS


def digest(rows: Iterable[tuple[Any, ...]]) -> dict[str, int]:
    """Rows as a count and a sum of checksums: equal for equal bags of rows, whatever their order."""
    count = total = 0
    for row in rows:
        count += 1
        total += zlib.crc32("|".join(str(field) for field in row).encode())
    return {"rows": count, "digest": total}


def keyed_digest(rows: Iterable[tuple[str, int, int]]) -> dict[str, int]:
    """Rows (key, running count, running sum) as their number and the digest of each key's last row.

    Records of one key that come through two channels may meet in any order, so only a key's last row is the same
    everywhere."""
    emitted = 0
    last: dict[str, tuple[int, int]] = {}
    for key, count, total in rows:
        emitted += 1
        last[key] = max((count, total), last.get(key, (0, 0)))
    return {"rows": emitted, "digest": digest((key, *value) for key, value in last.items())["digest"]}


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def rate_of(run: Callable[[int], object], args: argparse.Namespace) -> dict[str, Any]:
    """The rate between `base` and `records` records of a run; see `rate_of_times`."""
    return rate_of_times(lambda records: seconds(lambda: run(records)), args)


def rate_of_times(clock: Callable[[int], float], args: argparse.Namespace) -> dict[str, Any]:
    """Run `base` records for `warm_up` seconds, then `base` and `records` by the clock; the difference is the rate.

    What a run costs whatever its size (a cluster, workers, a plan, the end of input) is in both, and cancels. If the
    difference is below `timed` seconds, more records are run. CPU time is that of this process and all it started."""
    warm_up = 0.0
    while warm_up < args.warm_up or not warm_up:
        warm_up += clock(args.base)
    first, first_cpu = _with_cpu(clock, args.base)
    records = args.records
    for _ in range(_ATTEMPTS):
        second, second_cpu = _with_cpu(clock, records)
        taken = max(second - first, 0.05)
        if taken >= args.timed:
            break
        records = args.base + round((records - args.base) * min(1.15 * args.timed / taken, _LARGEST_STEP))
    return {
        **rate_between(args.base, first, records, second),
        "warm_up": round(warm_up, 1),
        "cpu_us": 1e6 * max(second_cpu - first_cpu, 0.0) / (records - args.base),
    }


_ATTEMPTS = 5
_LARGEST_STEP = 20  # a difference that is nearly nothing says little about how many records are needed


def _with_cpu(clock: Callable[[int], float], records: int) -> tuple[float, float]:
    family = Family(os.getpid())
    before = family.cpu_seconds()
    return clock(records), family.cpu_seconds() - before


def time_of_a_round(run: Callable[[int], object], few: int, rounds: int) -> dict[str, Any]:
    """The milliseconds of a round: the difference between `few` rounds and `rounds` more; the run before warms up."""
    first = seconds(lambda: run(few))
    second = seconds(lambda: run(few + rounds))
    return {"rounds": rounds, "round_ms": (second - first) * 1000 / rounds}


def rate_between(base: int, base_seconds: float, records: int, records_seconds: float) -> dict[str, Any]:
    """The rate from times taken elsewhere."""
    taken = records_seconds - base_seconds
    if taken <= 0:
        times = f"{records} records took {records_seconds:.2f} s and {base} took {base_seconds:.2f} s"
        message = f"{times}; hint: raise --scale, or wait for a quieter machine"
        raise SystemExit(message)
    return {
        "records": records,
        "base": base,
        "seconds": round(records_seconds, 3),
        "base_seconds": round(base_seconds, 3),
        "timed": round(taken, 2),
        "rate": (records - base) / taken,
    }


def percentile(values: Iterable[float], fraction: float) -> float:
    """The smallest value that at least `fraction` of the values do not exceed."""
    ordered = sorted(values)
    if not ordered:
        message = "no samples to take a percentile of"
        raise SystemExit(message)
    return ordered[max(0, -(-len(ordered) * round(fraction * 1_000_000) // 1_000_000) - 1)]


_PLOTTED = 1_000


def latencies(samples_ms: list[float]) -> dict[str, Any]:
    """p50 and p99 of epochs, micro-batches or records, and for the plot all samples, or so many of them, in order."""
    ordered = sorted(samples_ms)
    return {
        "samples": len(samples_ms),
        "p50_ms": percentile(samples_ms, 0.50),
        "p99_ms": percentile(samples_ms, 0.99),
        "samples_ms": [round(sample, 2) for sample in ordered[:: -(-len(ordered) // _PLOTTED) or 1]],
    }


def arguments(description: str | None, **defaults: int | str) -> argparse.Namespace:
    """The contestant's options, from their names and defaults, and those that every contestant has."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n", maxsplit=1)[0])
    for name, default in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    parser.add_argument("--part", choices=("check", "time"), default="time", help="what to do (default time)")
    parser.add_argument("--warm-up", type=float, default=0.0, help="least seconds to run before the clock starts")
    parser.add_argument("--timed", type=float, default=0.0, help="least seconds by the clock")
    return parser.parse_args()


def contest(
    args: argparse.Namespace, check: Callable[[], dict[str, Any]], measure: Callable[[], dict[str, Any]]
) -> None:
    """Do the part that was asked for: answer with the digest of a small run, or with a measurement."""
    answer({"check": check()} if args.part == "check" else measure())


def answer(result: dict[str, Any]) -> None:
    """Hand the result to the harness: one marked line on standard output."""
    print(RESULT_MARK + json.dumps(result), flush=True)
