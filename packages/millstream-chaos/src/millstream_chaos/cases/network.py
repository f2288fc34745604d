"""Links between drivers, executors and a Kafka broker are cut and repaired while an exactly-once job runs.

Promises: the committed output is that of a run without faults. Links are cut in both directions or in one, for moments
or for longer than the timeouts of Spark and Kafka; a leader that is cut off from its cluster is replaced by a driver on
another host.
Does not know: delay and loss, see `millstream_chaos.machine.proxy`; killed processes, see `kafka`.

Every host is a network namespace. This case itself runs in one of them, so that it reaches the broker; nothing is
reachable from outside."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from millstream.errors import ExternalError
from millstream.testing.host import Host
from millstream.testing.kafka import KafkaBroker
from millstream.testing.spark_cluster import SparkCluster
from millstream_chaos.jobs.drivers import Drivers, create_options
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.jobs.keyed_job import Specification
from millstream_chaos.jobs.kills import check_output
from millstream_chaos.jobs.topics import fill_topics, read_committed
from millstream_chaos.machine.network import Network
from millstream_chaos.machine.python_path import child_environment, source_folders
from millstream_chaos.trace import Report, Trace, draw_epoch

HOSTS = ("control", "master", "driver0", "driver1", "executor0", "executor1", "broker")
_SIZES = {
    "ci": {"records": 10_000, "keys": 400, "epoch_records": 300, "cuts": 3, "longest": 8.0},
    "normal": {"records": 120_000, "keys": 5_000, "epoch_records": 800, "cuts": 12, "longest": 20.0},
    "long": {"records": 1_000_000, "keys": 100_000, "epoch_records": 800, "cuts": 60, "longest": 40.0},
}
_PAIRS = (
    ("driver", "executor0"),
    ("driver", "executor1"),
    ("driver", "broker"),
    ("executor0", "broker"),
    ("executor0", "executor1"),
    ("master", "driver"),
    ("master", "executor0"),
)
_TIMEOUTS = {  # timeouts after which Spark treats a silent link as broken
    "spark.network.timeout": "6s",
    "spark.network.timeoutInterval": "2s",
    "spark.executor.heartbeatInterval": "1s",
    "spark.rpc.askTimeout": "6s",
}


def plan(seed: int, size: str) -> Trace:
    """Draw which link is cut after which epoch, in which directions and for how long."""
    parameters = dict(_SIZES[size])
    chance = np.random.default_rng([seed, 31])
    epochs, cuts = parameters["records"] / parameters["epoch_records"], int(parameters["cuts"])
    durations = [0.3, parameters["longest"], 2.0]
    steps: list[dict[str, Any]] = []
    for number in range(cuts):
        one, other = _PAIRS[int(chance.integers(0, len(_PAIRS)))]
        steps.append(
            {
                "after_epoch": draw_epoch(chance, epochs, number, cuts),
                "hosts": [one, other] if chance.random() < 0.5 else [other, one],
                "both": bool(chance.random() < 0.5),
                "seconds": durations[number % 3],
            }
        )
    return Trace("network", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Create the hosts, and play the trace on one of them."""
    with Network(HOSTS) as network:
        trace.save(directory / "trace.json")
        hosts = {name: asdict(host) for name, host in network.items()}
        (directory / "hosts.json").write_text(json.dumps(hosts), encoding="utf-8")
        command = network["control"].command(sys.executable, "-m", "millstream_chaos.cases.network", str(directory))
        with (directory / "control.log").open("wb") as log:
            status = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, env=child_environment(), check=False
            ).returncode
    report = Report(trace)
    answer = directory / "report.json"
    if not answer.exists():
        last = (directory / "control.log").read_text(errors="replace")[-2000:]
        msg = f"the case ended with status {status}: {last}"
        raise ExternalError(msg)
    outcome = json.loads(answer.read_text(encoding="utf-8"))
    report.figures, report.problems = outcome["figures"], outcome["problems"]
    return report


def main(directory: Path) -> None:
    """Run the job, cut the links and check the output; this runs on the host `control`."""
    trace = Trace.load(directory / "trace.json")
    hosts = json.loads((directory / "hosts.json").read_text(encoding="utf-8"))
    network = Network.existing({name: Host(**host) for name, host in hosts.items()})
    report = Report(trace)
    machines = [network[name] for name in ("master", "executor0", "executor1")]
    with (
        KafkaBroker(host=network["broker"]) as broker,
        SparkCluster(workers=2, hosts=machines, python_path=source_folders()) as cluster,
    ):
        settings = create_options(directory, epoch_records=trace.parameters["epoch_records"])
        settings |= engine_options(trace) | cluster.settings() | _TIMEOUTS
        specification = Specification(str(directory), options=settings, kafka=broker.bootstrap_servers)
        fill_topics(broker, specification, trace)
        drivers = Drivers(specification, standby=1, hosts=[network["driver0"], network["driver1"]])
        with drivers:
            for step in trace.iterate_steps():
                _cut(network, drivers, step, report)
            drivers.wait(drivers.has_ended, "the end of the job", 600)
            log_end = drivers.read_log_end()
        output = read_committed(broker)
    check_output(specification, directory, report, output)
    report.figures["leaders"] = len({line["pid"] for line in drivers.read_progress()})
    if not report.ok:
        report.figures["the end of the drivers' log"] = log_end[-600:]
    outcome = {"figures": report.figures, "problems": report.problems}
    (directory / "report.json").write_text(json.dumps(outcome), encoding="utf-8")


def _cut(network: Network, drivers: Drivers, step: Any, report: Report) -> None:
    """Cut a link for a while, and wait until the job continues."""
    drivers.wait_for_epoch(step["after_epoch"], 300)
    if drivers.has_ended():
        report.figures["too late"] = report.figures.get("too late", 0) + 1
        return
    leading = f"driver{drivers.leading_host()}"
    one, other = (leading if name == "driver" else name for name in step["hosts"])
    (network.cut_both if step["both"] else network.cut)(one, other)
    time.sleep(step["seconds"])
    network.heal()
    healed_at = time.monotonic()
    drivers.wait_for_more_epochs("epochs after a link was repaired", 300)
    took = round(time.monotonic() - healed_at, 1)
    direction = "between" if step["both"] else "from"
    line = f"{direction} {step['hosts'][0]} and {step['hosts'][1]} for {step['seconds']} s: {took}"
    report.figures.setdefault("seconds to continue", []).append(line)
    drivers.start_missing()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
