"""Run the benchmarks, millstream and its peers in turn, and print how they compare.

    python benchmarks/run.py [--only NAME]... [--rounds 3] [--scale 1.0] [--no-peers] [--write]

Promises: contestants of a benchmark take turns within every round; one that fails is reported, and the rest goes on.
Does not know: what a contestant does; plan.py lists them."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import replace
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks import processes, report  # noqa: E402
from benchmarks.environments import EnvironmentFailed, Environments  # noqa: E402
from benchmarks.plan import BENCHMARKS, Benchmark, Contestant  # noqa: E402


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser.add_argument("--only", action="append", choices=names, help="this benchmark alone; may be given again")
    parser.add_argument("--peer", action="append", help="only peers whose name contains this; may be given again")
    parser.add_argument("--rounds", type=int, default=3, help="how often each contestant runs (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the records (default 1)")
    parser.add_argument("--no-peers", action="store_true", help="millstream alone")
    parser.add_argument("--no-ours", action="store_true", help="peers alone")
    parser.add_argument("--deadline", type=float, default=600.0, help="seconds for one contestant (default 600)")
    parser.add_argument("--write", action="store_true", help="append the run to benchmarks/RESULTS.md")
    parser.add_argument(
        "--cache", type=Path, default=REPOSITORY / ".bench", help="environments and logs (default .bench)"
    )
    parser.add_argument("--flink-python", type=Path, help="an interpreter that has apache-flink")
    parser.add_argument("--bytewax-python", type=Path, help="an interpreter that has bytewax")
    return parser.parse_args()


def contestants(benchmark: Benchmark, args: argparse.Namespace) -> list[Contestant]:
    """Who takes part: growth compares millstream with itself, so its other size is no peer."""
    wanted = [peer for peer in benchmark.peers if not args.peer or any(part in peer.name for part in args.peer)]
    peers = [peer for peer in wanted if benchmark.growth or not args.no_peers]
    ours = [] if args.no_ours else [benchmark.ours]
    return [*ours, *(peer for peer in peers if not (args.no_ours and benchmark.growth))]


def run_one(
    benchmark: Benchmark, contestant: Contestant, number: int, environments: Environments, args: argparse.Namespace
) -> processes.Outcome:
    """One contestant in one round; a wrong output is a failure."""
    script = REPOSITORY / "benchmarks" / contestant.script
    log = args.cache / "logs" / f"{benchmark.name}-{contestant.name.replace(' ', '-').replace(',', '')}-{number}.log"
    try:
        command = [str(environments.python(contestant.environment)), str(script), *contestant.arguments(args.scale)]
        variables = environments.variables(contestant.environment) | environments.choose_engine(contestant.engine)
    except EnvironmentFailed as problem:
        return processes.Outcome(None, f"no environment: {problem}", processes.Memory())
    outcome = processes.run(command, variables, args.deadline, log)
    if outcome.result is None or benchmark.expected is None:
        return outcome
    expected = benchmark.expected()
    if outcome.result.get("check") != expected:
        failure = f"wrong output: {outcome.result.get('check')} where {expected} was expected"
        return replace(outcome, result=None, failure=failure)
    return outcome


def run_rounds(benchmark: Benchmark, environments: Environments, args: argparse.Namespace) -> report.Rounds:
    """All rounds of one benchmark."""
    rounds = report.Rounds(benchmark)
    for number in range(1, args.rounds + 1):
        for contestant in contestants(benchmark, args):
            print(f"{benchmark.name}, round {number} of {args.rounds}: {contestant.name} ...", end=" ", flush=True)
            outcome = run_one(benchmark, contestant, number, environments, args)
            rounds.add(contestant, outcome)
            figure = outcome.result and f"{outcome.result[benchmark.figure]:,.4g} {benchmark.unit}"
            print(figure or f"FAILED: {outcome.failure}", flush=True)
    return rounds


def main() -> int:
    """0 when every contestant ran and gave the right output."""
    args = options()
    args.cache = args.cache.resolve()
    given = {"flink": args.flink_python, "bytewax": args.bytewax_python}
    # Not resolved: an environment's interpreter is a link, and what it links to is outside the environment.
    environments = Environments(args.cache, {name: path.absolute() for name, path in given.items() if path is not None})
    where = report.machine()
    chosen = [benchmark for benchmark in BENCHMARKS if not args.only or benchmark.name in args.only]
    played = [benchmark for benchmark in chosen if contestants(benchmark, args)]
    all_rounds = [run_rounds(benchmark, environments, args) for benchmark in played]
    sized = [f"--rounds {args.rounds}", f"--scale {args.scale:g}", *(f"--only {name}" for name in args.only or [])]
    switches = [f"--{name.replace('_', '-')}" for name in ("no_peers", "no_ours") if getattr(args, name)]
    filters = [f"--peer {shlex.quote(part)}" for part in args.peer or []]
    text = report.section(" ".join(["python benchmarks/run.py", *sized, *switches, *filters]), where, all_rounds)
    print("\n" + text)
    if args.write:
        report.append(REPOSITORY / "benchmarks" / "RESULTS.md", text)
    return 1 if any(rounds.failures() for rounds in all_rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
