"""What a job without input costs: the CPU time of the driver, its JVM and all workers, in percent of one core.

Promises: the job reads a socket on which nothing arrives; checkpoints every 10 s; the time before it settles is not
counted.
Does not know: which part of it costs what."""

from __future__ import annotations

import tempfile
import time

import psutil
from benchmarks import common, record_feed
from benchmarks.jobs import epochs

from millstream.common import Types
from millstream.datastream.connectors.blackhole import BlackHoleSink

SETTLE_SECONDS = 10


def cpu_seconds() -> float:
    """The CPU time so far of this process and everything that it started."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, seconds=60, engine="jobs")
    with record_feed.feed(1, 0, starts=False) as feed, tempfile.TemporaryDirectory() as directory:
        env = epochs.environment(
            **{
                "millstream.engine": args.engine,
                "execution.checkpointing.interval": "10 s",
                "execution.checkpointing.dir": directory,
            }
        )
        lines = env.socket_text_stream("127.0.0.1", feed.port)
        epochs.counts(lines.map(len, Types.LONG())).sink_to(BlackHoleSink())
        client = env.execute_async("idle")
        feed.connected.wait()
        time.sleep(SETTLE_SECONDS)
        before, began = cpu_seconds(), time.monotonic()
        time.sleep(args.seconds)
        percent = 100 * (cpu_seconds() - before) / (time.monotonic() - began)
        client.cancel().result(60)
    common.answer({"seconds": args.seconds, "percent": round(percent, 2)})


if __name__ == "__main__":
    main()
