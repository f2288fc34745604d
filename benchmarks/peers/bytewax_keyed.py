"""stateful_map in bytewax: count and sum per key, in two processes.

Promises: the records exist before the clock starts, the output is discarded, state is not persisted, as by default.
Does not know: other peers, or how the rate is compared."""

from __future__ import annotations

import json
import multiprocessing
import socket
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from benchmarks import common

BATCH = 1_000
Record = tuple[str, int]


class Slice(StatefulSourcePartition[Record, int]):
    """Every second record of the pool, again and again, until `count` are out."""

    def __init__(self, pool: list[Record], count: int) -> None:
        self._pool, self._left, self._at = pool, count, 0

    def next_batch(self) -> list[Record]:
        if not self._left:
            raise StopIteration
        batch = self._pool[self._at : self._at + min(BATCH, self._left)]
        self._left -= len(batch)
        self._at = (self._at + len(batch)) % len(self._pool)
        return batch

    def snapshot(self) -> int:
        return self._left


class Payments(FixedPartitionedSource[Record, int]):
    """As many partitions as processes."""

    def __init__(self, pools: list[list[Record]], records: int) -> None:
        self._pools, self._count = pools, records // len(pools)

    def list_parts(self) -> list[str]:
        return [str(number) for number in range(len(self._pools))]

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Slice:
        return Slice(self._pools[int(for_part)], self._count)


class Discard(StatelessSinkPartition[Any]):
    """Takes rows and drops them."""

    def write_batch(self, items: list[Any]) -> None:
        pass


class Keep(StatelessSinkPartition[Any]):
    """Takes rows and keeps them in a file of its own, for the check."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def write_batch(self, items: list[Any]) -> None:
        self._file.writelines(json.dumps(item) + "\n" for item in items)

    def close(self) -> None:
        self._file.close()


class Output(DynamicSink[Any]):
    """One writer in each process."""

    def __init__(self, directory: str | None) -> None:
        self._directory = directory

    def build(self, step_id: str, worker_index: int, worker_count: int) -> StatelessSinkPartition[Any]:
        return Discard() if self._directory is None else Keep(Path(self._directory, str(worker_index)))


def count_and_sum(state: tuple[int, int] | None, amount: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The key's new totals, as state and as output."""
    count, total = state or (0, 0)
    totals = (count + 1, total + amount)
    return totals, totals


def pools_of(keys: int, size: int) -> list[list[Record]]:
    """The first `size` records, dealt to the partitions in turn."""
    records = [(common.string_key(common.key_of(index) % keys), common.amount_of(index)) for index in range(size)]
    return [records[number :: common.PARALLELISM] for number in range(common.PARALLELISM)]


def work(
    process: int, addresses: list[str], keys: int, size: int, records: int, output: str | None, ready: Barrier
) -> None:
    """One process of the cluster; the barrier lets the clock start when all have their records."""
    flow = Dataflow("keyed")
    stream = op.input("payments", flow, Payments(pools_of(keys, size), records))
    totals = op.stateful_map("totals", stream, count_and_sum)
    op.output("out", totals, Output(output))
    ready.wait()
    cluster_main(flow, addresses, process)


def free_addresses(count: int) -> list[str]:
    """Loopback addresses that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def cluster(keys: int, size: int, records: int, output: str | None = None) -> float:
    """Run a cluster to its end; the seconds it took once every process was ready."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(common.PARALLELISM + 1)
    addresses = free_addresses(common.PARALLELISM)
    processes = [
        context.Process(target=work, args=(process, addresses, keys, size, records, output, ready), daemon=True)
        for process in range(common.PARALLELISM)
    ]
    for process in processes:
        process.start()
    ready.wait()
    start = time.perf_counter()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        message = f"bytewax processes ended with {[process.exitcode for process in processes]}"
        raise SystemExit(message)
    return time.perf_counter() - start


def check() -> dict[str, int]:
    """The digest of a small run's rows."""
    with tempfile.TemporaryDirectory() as directory:
        cluster(common.CHECK_KEYS, common.CHECK_RECORDS, common.CHECK_RECORDS, directory)
        rows = [json.loads(line) for path in Path(directory).iterdir() for line in path.read_text().splitlines()]
    return common.keyed_digest((key, count, total) for key, (count, total) in rows)


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, base=1_000_000, records=5_000_000)

    def clock(records: int) -> float:
        return cluster(common.KEYS, common.PERIOD, records)

    common.contest(args, check, lambda: common.rate_of_times(clock, args))


if __name__ == "__main__":
    main()
