"""Run the benchmarks, millstream and its peers in turn, and compare them.

    python benchmarks/run.py                         # everything, five rounds; goes on where it was interrupted
    python benchmarks/run.py --quick                 # the most important lines in ten minutes, one round
    python benchmarks/run.py --only keyed --rounds 1 --scale 0.1

Promises: every contestant's output is checked before anything of its benchmark is timed; contestants take turns within
a round; a round in which other processes were busy is repeated, and said; one that fails is reported, and the rest goes
on. The exit status is 1 if anything failed or a goal was missed.
Does not know: what a contestant does; plan.py lists them."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from benchmarks import digests, machine, plots, processes, report  # noqa: E402
from benchmarks.compare import NOISE, Rounds  # noqa: E402
from benchmarks.contest import Benchmark, Contestant  # noqa: E402
from benchmarks.environments import EnvironmentFailed, Environments  # noqa: E402
from benchmarks.plan import BENCHMARKS  # noqa: E402
from benchmarks.processes import Outcome  # noqa: E402
from benchmarks.rounds_file import CHECK, Finished, RoundsFile  # noqa: E402

ROUNDS, ATTEMPTS = 5, 3
RESULTS = REPOSITORY / "benchmarks" / "RESULTS.md"


def options(words: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    names = [benchmark.name for benchmark in BENCHMARKS]
    parser.add_argument("--only", action="append", choices=names, help="this benchmark alone; may be given again")
    parser.add_argument("--peer", action="append", help="only peers whose name contains this; may be given again")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each contestant runs (default 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of records and seconds (default 1)")
    parser.add_argument("--quick", action="store_true", help="one small round of the most important lines")
    parser.add_argument("--no-peers", action="store_true", help="millstream alone")
    parser.add_argument("--no-ours", action="store_true", help="peers alone")
    parser.add_argument("--accept-noise", action="store_true", help="repeat no round because of other processes")
    parser.add_argument("--deadline", type=float, default=3600.0, help="seconds for one contestant (default 3600)")
    parser.add_argument("--write", action="store_true", help="write benchmarks/RESULTS.md")
    parser.add_argument("--cache", type=Path, default=REPOSITORY / ".bench", help="where to keep everything")
    parser.add_argument("--flink-python", type=Path, help="an interpreter that has apache-flink")
    parser.add_argument("--bytewax-python", type=Path, help="an interpreter that has bytewax")
    args = parser.parse_args(words)
    if args.quick:
        args.rounds = 1
    if args.write and (args.only or args.peer or args.no_peers or args.no_ours):
        parser.error("--write is for whole runs and for --quick; a part of the benchmarks does not make RESULTS.md")
    return args


def choose(benchmark: Benchmark, args: argparse.Namespace) -> list[Contestant]:
    """Return who takes part: growth compares millstream with itself, so its other sizes are no peers."""
    peers = [peer for peer in benchmark.peers if not args.peer or any(part in peer.name for part in args.peer)]
    if args.quick:
        peers = [peer for peer in peers if peer.name in benchmark.quick_peers]
    if args.no_peers and not benchmark.growth:
        peers = []
    if args.no_ours:
        return [] if benchmark.growth else peers
    return [benchmark.ours, *peers]


def chosen_benchmarks(args: argparse.Namespace) -> list[Benchmark]:
    """Return the benchmarks that somebody takes part in."""
    wanted = [each for each in BENCHMARKS if not args.only or each.name in args.only]
    return [each for each in wanted if (not args.quick or each.quick is not None) and choose(each, args)]


class Runner:
    """Runs contestants, and keeps what came of them."""

    def __init__(self, args: argparse.Namespace, file: RoundsFile, environments: Environments) -> None:
        self._args, self._file, self._environments = args, file, environments
        self._expected = digests.expected()
        self._left: list[tuple[str, str, int]] = []

    def run_all(self, benchmarks: list[Benchmark]) -> None:
        """Run the checks and rounds of all benchmarks that the file does not have."""
        self._left = [
            (benchmark.name, contestant.name, number)
            for benchmark in benchmarks
            for number in range(0 if benchmark.digest else 1, self._args.rounds + 1)
            for contestant in choose(benchmark, self._args)
        ]
        for benchmark in benchmarks:
            contestants = choose(benchmark, self._args)
            sound = [each for each in contestants if not benchmark.digest or self._check(benchmark, each)]
            for number in range(1, self._args.rounds + 1):
                self._run_round(benchmark, sound, number)
                self._left = [left for left in self._left if (left[0], left[2]) != (benchmark.name, number)]

    def _check(self, benchmark: Benchmark, contestant: Contestant) -> bool:
        """Return whether the contestant's output is right; a wrong one is a failure, and is not timed."""
        expected = self._expected[benchmark.digest or ""]
        outcome = self._obtain(benchmark, contestant, CHECK, 1)
        return outcome.result is not None and outcome.result.get("check") == expected

    def _run_round(self, benchmark: Benchmark, contestants: list[Contestant], number: int) -> None:
        """Run a round, and again while it is noisy."""
        for attempt in range(1, ATTEMPTS + 1):
            outcomes = [self._obtain(benchmark, contestant, number, attempt) for contestant in contestants]
            noise = max((outcome.others for outcome in outcomes), default=0.0)
            if noise < NOISE or self._args.accept_noise:
                return
            print(f"  other processes kept {noise:.1f} cores busy in this round", flush=True)

    def _obtain(self, benchmark: Benchmark, contestant: Contestant, number: int, attempt: int) -> Outcome:
        known = self._file.find(benchmark.name, contestant.name, number, attempt)
        step = (benchmark.name, contestant.name, number)
        self._left = [left for left in self._left if left != step]
        if known is not None:
            return known
        what = "check" if number == CHECK else f"round {number} of {self._args.rounds}"
        print(f"{benchmark.name}, {what}: {contestant.name} ({self._remaining(step)}) ...", end=" ", flush=True)
        outcome = self._run(benchmark, contestant, number)
        if number == CHECK and outcome.result is not None:
            expected = self._expected[benchmark.digest or ""]
            if outcome.result.get("check") != expected:
                failure = f"wrong output: {outcome.result.get('check')} where {expected} was expected"
                outcome = replace(outcome, failure=failure)
        self._file.add(Finished(benchmark.name, contestant.name, number, attempt, outcome))
        print(_said(benchmark, outcome, number), flush=True)
        return outcome

    def _run(self, benchmark: Benchmark, contestant: Contestant, number: int) -> Outcome:
        script = REPOSITORY / "benchmarks" / contestant.script
        name = contestant.name.replace(" ", "-").replace(",", "")
        log = self._args.cache / "logs" / f"{benchmark.name}-{name}-{number}.log"
        scale = self._args.scale * (benchmark.quick or 1.0 if self._args.quick else 1.0)
        part = "check" if number == CHECK else "time"
        try:
            python = self._environments.python(contestant.environment)
            variables = self._environments.variables(contestant.environment)
            variables |= self._environments.choose_engine(contestant.engine)
        except EnvironmentFailed as problem:
            return Outcome(None, f"no environment: {problem}")
        command = [str(python), str(script), *contestant.arguments(scale, part)]
        return processes.run(command, variables, self._args.deadline, log)

    def _remaining(self, step: tuple[str, str, int]) -> str:
        """Say how long everything that is left may take."""
        estimates = [self._file.estimate(*left) for left in [step, *self._left]]
        known = [estimate for estimate in estimates if estimate is not None]
        if len(known) < len(estimates):
            return f"{len(estimates)} to go"
        return f"{len(estimates)} to go, about {_duration(sum(known))}"


def _said(benchmark: Benchmark, outcome: Outcome, number: int) -> str:
    if outcome.failure is not None or outcome.result is None:
        return f"FAILED: {outcome.failure}"
    if number == CHECK:
        return "right"
    return f"{outcome.result[benchmark.figure]:,.4g} {benchmark.unit}, {outcome.peak_mib:,.0f} MiB"


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def describe_run(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the run is of."""
    kind = "a quick run" if args.quick else "a run"
    return {**machine.describe(), "kind": kind, "rounds": args.rounds, "scale": args.scale}


def main() -> int:
    """Return 0 when every contestant ran, gave the right output, and every goal was met."""
    args = options()
    args.cache = args.cache.resolve()
    given = {"flink": args.flink_python, "bytewax": args.bytewax_python}
    # Not resolved: an environment's interpreter is a link, and what it links to is outside the environment.
    environments = Environments(args.cache, {name: path.absolute() for name, path in given.items() if path is not None})
    benchmarks = chosen_benchmarks(args)
    name = "rounds-quick.jsonl" if args.quick else "rounds.jsonl"
    file = RoundsFile(args.cache / name, describe_run(args))
    began = time.monotonic()
    Runner(args, file, environments).run_all(benchmarks)
    all_rounds = [Rounds(benchmark, file.finished) for benchmark in benchmarks]
    is_whole = not args.quick and args.scale == 1 and args.rounds >= ROUNDS
    if args.write:
        names = plots.draw_all(RESULTS.with_name("plots"), all_rounds)
        text = report.results(file.header, all_rounds, [f"plots/{name}" for name in names], is_whole)
        report.write(RESULTS, text, file.header["started"])
    print("\n" + report.table(all_rounds))
    failures = [line for rounds in all_rounds for line in rounds.failures()]
    missed = [line for rounds in all_rounds for line in rounds.missed()]
    for line in (*failures, *missed):
        print(line)
    print(f"took {_duration(time.monotonic() - began)}; {len(failures)} failures, {len(missed)} goals missed")
    return 1 if failures or missed else 0


if __name__ == "__main__":
    sys.exit(main())
