"""What the REST server costs: CPU time of a job with the server on and a client that polls as the web UI does, and
without.

    python benchmarks/jobs/rest_cost.py [--records 4000000] [--rounds 3]
    python benchmarks/jobs/rest_cost.py --rounds 0 --records 500000     # only what a poll costs

Promises: rounds alternate; the figure is the CPU time of the driver, its JVM and its Python workers for a million
records. The client is a process of its own, whose time does not count. It is CPU time, since other work on the machine
changes the time that passes.
Does not know: peers; there is nothing to compare with."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import common
from benchmarks.jobs.keyed import totals

from millstream.cluster import entrypoint
from millstream.common import Configuration, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.datagen import DataGenSource, RandomInt, RandomString

POLL = """
import json, sys, time, urllib.request
def get(path):
    with urllib.request.urlopen(sys.argv[1] + path, timeout=30) as answer:
        return json.load(answer)
count = 0
while True:
    for job in get("/jobs/overview")["jobs"][-1:]:
        if job["end-time"] < 0 or len(sys.argv) > 2:
            for path in ("", "/millstream/graph", "/millstream/epochs", "/checkpoints"):
                get(f"/jobs/{job['jid']}{path}")
    print("polled", flush=True)
    if len(sys.argv) > 2 and (count := count + 1) == int(sys.argv[2]):
        break
    if len(sys.argv) < 3:
        time.sleep(1)
"""


def cpu_seconds(without: int | None) -> float:
    """CPU time of this process and of those that it has started, but not of one of them."""
    me = psutil.Process(os.getpid())
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        if process.pid != without:
            times = process.cpu_times()
            total += times.user + times.system
    return total


def run(records: int, *, polled: bool) -> tuple[float, int]:
    """CPU seconds of one run, and how often it was polled."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(common.PARALLELISM)
    source = DataGenSource(
        fields={"k": RandomString(prefix="user-", cardinality=common.KEYS), "amount": RandomInt(0, 99)},
        count=records,
        seed=7,
    )
    payments = env.from_source(source, WatermarkStrategy.no_watermarks(), "payments")
    totals(payments).sink_to(BlackHoleSink())
    client = None
    if polled:
        address = entrypoint.serve(Configuration.from_dict({"rest.bind-port": "0"}))
        client = subprocess.Popen([sys.executable, "-c", POLL, str(address)], stdout=subprocess.PIPE, text=True)
    pid = None if client is None else client.pid
    try:
        before = cpu_seconds(pid)
        env.execute("keyed")
        used = cpu_seconds(pid) - before
    finally:
        if client is not None:
            client.terminate()
            output, _ = client.communicate()
            entrypoint._servers.pop().stop()
    return used, 0 if client is None else output.count("polled")


def cost_of_polls(count: int) -> float:
    """CPU milliseconds of this process for one poll, with jobs that have ended, so that nothing else runs."""
    address = entrypoint.serve(Configuration.from_dict({"rest.bind-port": "0"}))
    me = psutil.Process(os.getpid())
    subprocess.run([sys.executable, "-c", POLL, str(address), "20"], stdout=subprocess.DEVNULL, check=True)
    before = me.cpu_times()
    subprocess.run([sys.executable, "-c", POLL, str(address), str(count)], stdout=subprocess.DEVNULL, check=True)
    after = me.cpu_times()
    entrypoint._servers.pop().stop()
    return 1000 * (after.user + after.system - before.user - before.system) / count


def main() -> None:
    """Print the median of the rounds with and without."""
    parser = argparse.ArgumentParser(description="the cost of REST")
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    run(args.records // 10, polled=False)  # starts Spark and its workers
    cost, cores = cost_of_polls(200), os.cpu_count() or 1
    print(f"a poll: {cost:.1f} ms of CPU; with one a second {cost / 10 / cores:.2f} % of {cores} cores", flush=True)
    used: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * args.rounds):
        polled = number % 4 in (1, 2)  # off, on, on, off: what drifts is shared by both
        seconds, polls = run(args.records, polled=polled)
        used[polled].append(seconds / args.records * 1e6)
        print(
            f"{'with' if polled else 'without'} REST: {used[polled][-1]:.3f} CPU s per million, {polls} polls",
            flush=True,
        )
    if not args.rounds:
        return
    without, with_rest = statistics.median(used[False]), statistics.median(used[True])
    print(f"medians: {without:.3f} without, {with_rest:.3f} with REST; cost {100 * (with_rest / without - 1):.1f} %")


if __name__ == "__main__":
    main()
