"""Python workers and drivers are killed while a job iterates: a graph algorithm in rounds, and entities with messages.

Promises: the job runs as Spark jobs and on resident slots; the output is what plain Python computes, every line once.
Does not know: input that arrives while the job iterates; see `kills`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from millstream_chaos.jobs.drivers import create_options
from millstream_chaos.jobs.keyed_job import Specification
from millstream_chaos.jobs.kills import kill_as_planned, plan_kills
from millstream_chaos.jobs.loop_job import compute_lines
from millstream_chaos.outputs.compare import find_differences, hash_lines, read_lines
from millstream_chaos.trace import Report, Trace

ENGINES = ("jobs", "resident")
_SIZES = {
    "ci": {"rounds": 90, "kills": 3, "drivers": 1},
    "normal": {"rounds": 400, "kills": 10, "drivers": 2},
    "long": {"rounds": 2_000, "kills": 60, "drivers": 8},
}
_ROUND = "40 ms"  # the least time of a round: on resident slots the job would end before it is killed


def plan(seed: int, size: str) -> Trace:
    """Draw which process is killed after which round, on each engine."""
    parameters = dict(_SIZES[size])
    steps = []
    for number, engine in enumerate(ENGINES):
        rounds = {**parameters, "records": parameters["rounds"], "epoch_records": 1}
        kills = plan_kills(seed * 2 + number, rounds, ("worker",), ("driver",))
        steps += [{**kill, "engine": engine} for kill in kills]
    return Trace("loops", seed, size, parameters, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Run the job with the kills on each engine, and check the output."""
    report = Report(trace)
    for engine in ENGINES:
        steps = [step for step in trace.steps if step["engine"] == engine]
        if steps:
            _play_engine(engine, replace(trace, steps=steps), directory / engine, report)
    return report


def _play_engine(engine: str, trace: Trace, directory: Path, report: Report) -> None:
    options = create_options(directory, epoch_records=1_000)
    options |= {"millstream.engine": engine, "millstream.epoch.min-interval": _ROUND}
    specification = Specification(str(directory), options=options, loops=trace.parameters["rounds"])
    part = Report(trace)
    kill_as_planned(specification, part, standby=1)
    output = read_lines(specification.output)
    for problem in find_differences(output, {"computed": list(compute_lines(specification.loops))}):
        report.check(False, f"{engine}: {problem}")
    late = part.figures.get("too late", 0)
    report.check(late <= len(trace.steps) // 2, f"{engine}: the job ended before half of the kills")
    lines = [line for file in output.values() for line in file]
    figures = part.figures | {"lines": len(lines), "digest": hash_lines(lines)[:16]}
    report.figures |= {f"{engine}: {name}": value for name, value in figures.items()}
