"""What every contestant shares: the input, the digest of an output, and the line a contestant answers with.

Promises: standard library only, so that it imports in every peer's environment; an index gives the same record
everywhere.
Does not know: any engine, how contestants are started, or what is compared with what."""

from __future__ import annotations

import argparse
import json
import time
import zlib
from collections.abc import Callable, Iterable
from typing import Any

KEYS = 100_000
AMOUNTS = 100
WINDOW_MS = 600_000
PARALLELISM = 2
CHECK_RECORDS = 5_000
CHECK_WINDOW_MS = 1_000
CHECK_KEYS = 100
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


def expected_keyed(records: int = CHECK_RECORDS) -> dict[str, int]:
    """What `keyed_digest` must give for the first `records` records."""
    totals: dict[str, tuple[int, int]] = {}
    rows = []
    for index in range(records):
        key = string_key(key_of(index) % CHECK_KEYS)
        count, total = totals.get(key, (0, 0))
        totals[key] = (count + 1, total + amount_of(index))
        rows.append((key, *totals[key]))
    return keyed_digest(rows)


def expected_window(records: int = CHECK_RECORDS) -> dict[str, int]:
    """The digest of (key, window start in ms, count, sum), one row for each key and window; record `i` is of ms `i`."""
    totals: dict[tuple[int, int], tuple[int, int]] = {}
    for index in range(records):
        slot = (key_of(index) % CHECK_KEYS, index - index % CHECK_WINDOW_MS)
        count, total = totals.get(slot, (0, 0))
        totals[slot] = (count + 1, total + amount_of(index))
    return digest((*slot, *value) for slot, value in totals.items())


def expected_cep(records: int = CEP_CHECK_RECORDS) -> dict[str, int]:
    """The digest of (key, first record, last record) of each tiny, middle and large payment in a row of one key."""
    last_two: dict[int, list[int]] = {}
    found = []
    for index in range(records):
        key = key_of(index) % CEP_CHECK_KEYS
        before = last_two.setdefault(key, [])
        if len(before) == 2 and amount_of(index) >= LARGE_FROM and index - before[0] < CEP_WITHIN_MS:
            tiny, middle = map(amount_of, before)
            if tiny < TINY_BELOW <= middle < LARGE_FROM:
                found.append((key, before[0], index))
        before.append(index)
        del before[:-2]
    return digest(found)


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def rate_of(run: Callable[[int], object], base: int, records: int) -> dict[str, Any]:
    """The rate between `base` and `records`: a run to warm up, then two, and the difference of their times.

    What a run costs whatever its size (a cluster, workers, a plan, the end of input) is in both, and cancels."""
    run(base)
    first = seconds(lambda: run(base))
    second = seconds(lambda: run(records))
    return rate_between(base, first, records, second)


def time_of_a_round(run: Callable[[int], object], few: int, rounds: int) -> dict[str, Any]:
    """The milliseconds of a round: the difference between `few` rounds and `rounds` more; the run before warms up."""
    first = seconds(lambda: run(few))
    second = seconds(lambda: run(few + rounds))
    return {"rounds": rounds, "round_ms": (second - first) * 1000 / rounds}


def rate_between(base: int, base_seconds: float, records: int, records_seconds: float) -> dict[str, Any]:
    """The same from times taken elsewhere."""
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
        "rate": (records - base) / taken,
    }


def percentile(values: Iterable[float], fraction: float) -> float:
    """The smallest value that at least `fraction` of the values do not exceed."""
    ordered = sorted(values)
    if not ordered:
        message = "no samples to take a percentile of"
        raise SystemExit(message)
    return ordered[max(0, -(-len(ordered) * round(fraction * 1_000_000) // 1_000_000) - 1)]


def latencies(samples_ms: list[float]) -> dict[str, Any]:
    """p50 and p99 of epochs or micro-batches."""
    return {
        "samples": len(samples_ms),
        "p50_ms": percentile(samples_ms, 0.50),
        "p99_ms": percentile(samples_ms, 0.99),
    }


def arguments(description: str | None, **defaults: int | str) -> argparse.Namespace:
    """The contestant's options, from their names and defaults."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n", maxsplit=1)[0])
    for name, default in defaults.items():
        parser.add_argument("--" + name.replace("_", "-"), type=type(default), default=default)
    return parser.parse_args()


def answer(result: dict[str, Any]) -> None:
    """Hand the result to the harness: one marked line on standard output."""
    print(RESULT_MARK + json.dumps(result), flush=True)
