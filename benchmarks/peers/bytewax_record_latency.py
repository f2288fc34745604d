"""How long a record takes in bytewax, from the socket to the sink function, with `exchange` exchanges by key.

Promises: two processes, a count per key after each exchange; state is not persisted, as by default.
Does not know: other peers, or how the latencies are compared."""

from __future__ import annotations

import multiprocessing
import socket
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import FixedPartitionedSource, StatefulSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

from benchmarks import common, record_feed
from benchmarks.peers.bytewax_keyed import free_addresses

Record = tuple[int, int]


class Lines(StatefulSourcePartition[Record, None]):
    """The records of the socket, without waiting for them."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setblocking(False)
        self._rest = b""

    def next_batch(self) -> list[Record]:
        try:
            received = self._socket.recv(1 << 16)
        except BlockingIOError:
            return []
        if not received:
            raise StopIteration
        *lines, self._rest = (self._rest + received).split(b"\n")
        return [record_feed.parse(line.decode()) for line in lines]

    def snapshot(self) -> None:
        return None


class Socket(FixedPartitionedSource[Record, None]):
    """One partition."""

    def __init__(self, port: int) -> None:
        self._port = port

    def list_parts(self) -> list[str]:
        return ["socket"]

    def build_part(self, step_id: str, for_part: str, resume_state: None) -> Lines:
        return Lines(self._port)


class Arrive(StatelessSinkPartition[Any]):
    """The sink function."""

    def __init__(self, directory: str, rate: int) -> None:
        self._directory, self._rate = directory, rate

    def write_batch(self, items: list[Any]) -> None:
        for number, created in items:
            record_feed.note_arrival(self._directory, self._rate, number, created)


class Output(DynamicSink[Any]):
    """A sink in each process."""

    def __init__(self, directory: str, rate: int) -> None:
        self._directory, self._rate = directory, rate

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Arrive:
        return Arrive(self._directory, self._rate)


def count(state: int | None, record: Record) -> tuple[int, Record]:
    """Count the records of a key, and emit them unchanged."""
    return (state or 0) + 1, record


def work(process: int, addresses: list[str], exchange: int, port: int, directory: str, rate: int) -> None:
    """One process of the cluster."""
    flow = Dataflow("latency")
    stream = op.input("socket", flow, Socket(port))
    for number in range(exchange):
        keyed = op.key_on(f"key-{number}", stream, lambda record: str(record[0] % record_feed.KEYS))
        stream = op.map(f"value-{number}", op.stateful_map(f"count-{number}", keyed, count), lambda pair: pair[1])
    op.output("out", stream, Output(directory, rate))
    cluster_main(flow, addresses, process)


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, exchange=0, rate=50, seconds=20)
    context = multiprocessing.get_context("spawn")
    addresses = free_addresses(common.PARALLELISM)
    with record_feed.feed(args.rate, args.seconds) as feed:
        processes = [
            context.Process(
                target=work, args=(process, addresses, args.exchange, feed.port, feed.directory, args.rate), daemon=True
            )
            for process in range(common.PARALLELISM)
        ]
        for process in processes:
            process.start()
        answer = feed.wait()
        for process in processes:
            process.kill()
    common.answer(answer)


if __name__ == "__main__":
    main()
