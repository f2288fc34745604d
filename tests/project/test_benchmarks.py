"""The benchmark suite's own arithmetic, with made-up numbers: intervals, goals, noise, resuming, the report."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
sys.path.append(str(REPOSITORY))

from benchmarks import common, digests, guard, plots, report, run  # noqa: E402
from benchmarks.compare import Rounds  # noqa: E402
from benchmarks.contest import Benchmark, Contestant, Goal, Of  # noqa: E402
from benchmarks.environments import Environments  # noqa: E402
from benchmarks.family import Family  # noqa: E402
from benchmarks.intervals import Interval, bootstrap  # noqa: E402
from benchmarks.plan import BENCHMARKS  # noqa: E402
from benchmarks.processes import Outcome  # noqa: E402
from benchmarks.rounds_file import CHECK, Finished, RoundsFile  # noqa: E402

OURS = Contestant("ours", "ours.py", "millstream", (), warm_up=5, timed=10)
PEER = Contestant("peer", "peer.py", "flink", (("base", 100), ("mini_batch", 7)), (Goal(4), Goal(2, of=Of.CPU)))
CONTEST = Benchmark("contest", "a contest", "rate", "rows/s", OURS, (PEER,), digest="keyed", quick=0.1)
HEADER = {
    "started": "2026-01-01T00:00:00Z",
    "commit": "abc",
    "kind": "a quick run",
    "rounds": 5,
    "scale": 1.0,
    "load": 0.1,
    "versions": {"Python": "3.11"},
    "machine": "two cores",
}


def outcome(rate: float, **more: Any) -> Outcome:
    queries = {"queries": more.pop("queries")} if "queries" in more else {}
    result = {"rate": rate, "cpu_us": more.pop("cpu_us", 1.0), **queries}
    return Outcome(result, None, **{"cpu_seconds": 10.0, "peak_mib": 100.0, "seconds": 5.0, **more})


def rounds_of(ours: list[float], peer: list[float], **more: Any) -> Rounds:
    finished = [
        Finished("contest", name, number, 1, outcome(rate, **more))
        for name, rates in (("ours", ours), ("peer", peer))
        for number, rate in enumerate(rates, 1)
    ]
    return Rounds(CONTEST, finished)


# ------------------------------------------------------------------------------------------------------------ intervals


def test_equal_rounds_have_an_interval_without_width() -> None:
    assert bootstrap([3.0] * 5) == Interval(3.0, 3.0, 3.0, 5)


def test_the_interval_of_five_rounds_holds_the_median_and_nothing_beyond_the_rounds() -> None:
    found = bootstrap([5.0, 4.0, 9.0, 4.5, 4.8])
    assert (found.low, found.median, found.high) == (4.0, 4.8, 9.0)
    assert found == bootstrap([5.0, 4.0, 9.0, 4.5, 4.8])


def test_many_rounds_make_the_interval_narrow() -> None:
    values = [10 + (number * 7 % 11) / 10 for number in range(200)]
    found = bootstrap(values)
    assert 10.3 < found.low <= found.median <= found.high < 10.7


def test_one_or_two_rounds_judge_no_goal() -> None:
    assert not bootstrap([1.0, 2.0]).is_quotable
    assert [verdict.is_met for verdict in rounds_of([9.0], [1.0]).verdicts(PEER)] == [None, None]


# -------------------------------------------------------------------------------------------------- ratios and verdicts


def test_a_ratio_compares_runs_of_the_same_round() -> None:
    # Rates of both drop by half in the third round: the ratio does not.
    ratio = rounds_of([50.0, 50.0, 25.0], [10.0, 10.0, 5.0]).ratio(PEER)
    assert ratio == Interval(5.0, 5.0, 5.0, 3)


def test_a_goal_is_judged_by_the_worse_end_of_the_interval() -> None:
    rounds = rounds_of([50.0, 50.0, 50.0, 50.0, 39.0], [10.0] * 5)
    verdict, _ = rounds.verdicts(PEER)
    assert (verdict.quoted, verdict.is_met) == (3.9, False)
    assert rounds.missed() == ["contest: peer: ≥ 4, but 3.9", "contest: peer: ≥ 2 per CPU second, but 1"]
    at_most = Goal(at_most=1.5)
    assert not at_most.is_met(Interval(1.0, 1.2, 1.6, 5))
    assert at_most.is_met(Interval(1.0, 1.2, 1.5, 5))


def test_cpu_time_and_memory_have_ratios_of_their_own() -> None:
    finished = [
        Finished("contest", "ours", 1, 1, outcome(50.0, cpu_us=2.0, peak_mib=400.0)),
        Finished("contest", "peer", 1, 1, outcome(10.0, cpu_us=7.0, peak_mib=200.0)),
    ]
    rounds = Rounds(CONTEST, finished)
    assert rounds.ratio(PEER, Of.CPU).median == 3.5
    assert rounds.ratio(PEER, Of.MEMORY).median == 2.5  # five times the rate with twice the memory


def test_the_mean_over_queries_leaves_out_what_does_not_compare() -> None:
    contest = replace(CONTEST, not_compared=("q3",))
    ours, peer = {"rate": 1.0, "queries": {"q1": 8.0, "q2": 2.0, "q3": 900.0}}, {"rate": 1.0, "queries": {}}
    peer["queries"] = {"q1": 1.0, "q2": 1.0, "q3": 1.0}
    assert contest.ratio_of_results(ours, peer) == pytest.approx(4.0)
    times = replace(contest, figure="seconds", higher_is_better=False)
    assert (
        times.ratio_of_results({"seconds": 10.0, "queries": {"a": 1.0}}, {"seconds": 20.0, "queries": {"a": 9.0}}) == 2
    )


def test_each_query_is_judged() -> None:
    peer = replace(PEER, goals=(Goal(1.5, of=Of.EACH),))
    contest = replace(CONTEST, peers=(peer,))
    finished = [
        Finished("contest", name, number, 1, outcome(1.0, queries=queries))
        for number in (1, 2, 3)
        for name, queries in (("ours", {"q1": 3.0, "q2": 1.2}), ("peer", {"q1": 1.0, "q2": 1.0}))
    ]
    (verdict,) = Rounds(contest, finished).verdicts(peer)
    assert (verdict.quoted, verdict.is_met) == (1.2, False)


def test_a_failed_round_is_in_no_ratio_and_is_told() -> None:
    rounds = rounds_of([50.0, 50.0], [10.0])
    failed = Finished("contest", "peer", 2, 1, Outcome(None, "ended with status 1"))
    rounds = Rounds(CONTEST, [*rounds._entries, failed])
    assert rounds.ratio(PEER) == Interval(5.0, 5.0, 5.0, 1)
    assert rounds.failures() == ["contest: peer: ended with status 1"]
    assert "failed in 1 of 2 rounds" in report.table([rounds])


# ----------------------------------------------------------------------------------------------------- rounds and noise


class Played:
    """Contestants that only answer. `noise` is what others keep busy in each call; the last value stays."""

    def __init__(self, noise: list[float], check: dict[str, int]) -> None:
        self.calls: list[tuple[str, str]] = []
        self._noise, self._check = noise, check

    def run(self, command: list[str], variables: dict[str, str], deadline: float, log: Path) -> Outcome:
        part = command[command.index("--part") + 1]
        self.calls.append((Path(command[1]).stem, part))
        result = {"check": self._check} if part == "check" else {"rate": 50.0 if "ours" in command[1] else 10.0}
        others = 0.0 if part == "check" else self._noise.pop(0) if len(self._noise) > 1 else self._noise[0]
        return Outcome(result, None, 1.0, 10.0, 2.0, others)


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def start(noise: list[float], *words: str, check: dict[str, int] | None = None) -> tuple[Played, RoundsFile]:
        played = Played(noise, digests.expected()["keyed"] if check is None else check)
        monkeypatch.setattr(run.processes, "run", played.run)
        args = run.options([*words, "--cache", str(tmp_path)])
        file = RoundsFile(tmp_path / "rounds.jsonl", HEADER)
        run.Runner(args, file, Environments(tmp_path, {"flink": Path(sys.executable)})).run_all([CONTEST])
        return played, file

    return start


def test_contestants_take_turns_after_a_check_of_each(play: Any) -> None:
    played, _ = play([0.0], "--rounds", "3")
    checks = [("ours", "check"), ("peer", "check")]
    assert played.calls == [*checks, *[("ours", "time"), ("peer", "time")] * 3]


def test_a_wrong_output_is_a_failure_and_is_not_timed(play: Any) -> None:
    played, file = play([0.0], "--rounds", "2", check={"rows": 1, "digest": 2})
    assert {part for _, part in played.calls} == {"check"}
    assert len(Rounds(CONTEST, file.finished).failures()) == 2


def test_a_noisy_round_is_repeated_and_told(play: Any) -> None:
    played, file = play([0.0, 0.5, 0.1, 0.0], "--rounds", "1")  # the first attempt is noisy, the second is not
    assert [name for name, part in played.calls if part == "time"] == ["ours", "peer", "ours", "peer"]
    (line,) = Rounds(CONTEST, file.finished).noise()
    assert "attempt 1: others kept 0.5 cores busy beside peer; it was repeated" in line


def test_a_round_that_stays_noisy_counts_and_is_told(play: Any) -> None:
    played, file = play([0.9], "--rounds", "1")
    assert len(played.calls) == 2 + 2 * run.ATTEMPTS
    rounds = Rounds(CONTEST, file.finished)
    assert sum("counts: there was no quieter attempt" in line for line in rounds.noise()) == 2
    assert rounds.ratio(PEER).median == 5.0


def test_a_run_goes_on_where_it_was(play: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play([0.0], "--rounds", "2")
    with (tmp_path / "rounds.jsonl").open("a") as file:
        file.write('{"benchmark": "contest", "contes')  # killed while it wrote
    played, file = play([0.0], "--rounds", "3")
    assert played.calls == [("ours", "time"), ("peer", "time")]
    assert "2 to go, about 0 min" in capsys.readouterr().out
    assert len(RoundsFile(tmp_path / "rounds.jsonl", HEADER).finished) == 8


def test_another_commit_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "rounds.jsonl"
    entry = Finished("contest", "ours", CHECK, 1, outcome(1.0))
    RoundsFile(path, HEADER).add(entry)
    assert RoundsFile(path, {**HEADER, "load": 7.0, "started": "later"}).finished == [entry]
    assert RoundsFile(path, {**HEADER, "commit": "def"}).finished == []
    assert len(list(tmp_path.glob("rounds-*.jsonl"))) == 1


# ----------------------------------------------------------------------------------------------------------- the report


def test_the_results_are_one_table_with_what_was_missed() -> None:
    text = report.results(HEADER, [rounds_of([50.0, 50.0, 39.0], [10.0] * 3)], ["plots/throughput.svg"], whole=True)
    assert "The newest complete run." in text
    assert "Commit: abc" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 3
    assert "**contest**: a contest" in rows[2]
    assert "≥ 4: **missed**<br>≥ 2 per CPU second: **missed** | 3.9<br>1 per CPU second |" in rows[2]
    assert "contest: peer: ≥ 4, but 3.9" in text
    assert "![throughput](plots/throughput.svg)" in text


def test_results_of_a_quick_run_say_so_first() -> None:
    text = report.results(HEADER, [rounds_of([50.0], [10.0])], [], whole=False)
    assert text.startswith("# Results\n\n**Not a complete run.** This is a quick run")
    assert "5 (1 round)" in text


def test_the_results_before_move_to_the_history(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    for number in (1, 2):
        report.write(path, f"# Results\n\nrun {number}\n", f"2026-01-0{number}T00:00:00Z")
    assert path.read_text().endswith("run 2\n")
    (older,) = (tmp_path / "history").iterdir()
    assert older.read_text().endswith("run 1\n")


def test_plots_are_well_formed(tmp_path: Path) -> None:
    latency = replace(CONTEST, name="latency", unit="ms p50", figure="p50_ms", higher_is_better=False)
    growth = replace(CONTEST, name="growth", unit="ms p50", figure="p50_ms", growth=True)
    results = {"p50_ms": 3.0, "p99_ms": 9.0, "keys": 10, "samples_ms": [1.0, 3.0, 9.0], "rate": 4.0}
    all_rounds = [
        Rounds(each, [Finished(each.name, name, 1, 1, Outcome(dict(results), None)) for name in ("ours", "peer")])
        for each in (CONTEST, latency, growth)
    ]
    assert plots.draw_all(tmp_path, all_rounds) == ["throughput.svg", "latency.svg", "growth.svg"]
    for path in tmp_path.iterdir():
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    assert plots.draw_all(tmp_path, []) == []
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------------------------------------------- what is measured


def test_the_timed_part_is_made_long_enough() -> None:
    clocked: list[int] = []

    def clock(records: int) -> float:
        clocked.append(records)
        return 1.0 + records / 1000

    found = common.rate_of_times(clock, argparse.Namespace(base=100, records=1_100, warm_up=3.0, timed=20.0))
    assert clocked[:3] == [100, 100, 100]  # 1.1 s each to warm up
    assert found["timed"] >= 20
    assert found["rate"] == pytest.approx(1000)  # what a run costs whatever its size is not in it


def test_the_size_of_a_run_scales_with_its_seconds() -> None:
    words = PEER.arguments(0.5, "time")
    assert words == ["--part", "time", "--warm-up", "2.5", "--timed", "2.5", "--base", "50", "--mini-batch", "7"]


def test_a_family_has_those_who_left_the_session() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; sum(range(3_000_000)); print('done', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.readline()
    family = Family(os.getpid())
    assert child.pid in {member.pid for member in family.members()}
    alone = Family(child.pid)
    assert alone.cpu_seconds() > 0
    assert 1 < alone.memory_mib() < family.memory_mib()
    child.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while alone.members() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alone.members() == []


def test_the_digests_are_those_of_the_independent_script() -> None:
    found = {name: digest() for name, digest in digests.ALL.items() if name != "tpch"}
    assert {**found, "tpch": digests.expected()["tpch"]} == digests.expected()


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_benchmark_has_its_scripts_and_digest(benchmark: Benchmark) -> None:
    for contestant in benchmark.contestants():
        script = (REPOSITORY / "benchmarks" / contestant.script).read_text()
        assert "common.arguments(" in script or "measure" in script
    assert benchmark.digest is None or benchmark.digest in digests.expected()
    assert set(benchmark.quick_peers) <= {peer.name for peer in benchmark.peers} or benchmark.quick is None
    assert len({each.name for each in benchmark.contestants()}) == len(benchmark.contestants())


# ------------------------------------------------------------------------------------------------------------ the guard


def test_the_guard_allows_a_tenth() -> None:
    expected = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert guard.compare(expected, {"a": 1.09, "b": 1.85}) == []
    slower, faster, unknown = guard.compare(expected, {"a": 1.11, "c": 2.6, "d": 1.0})
    assert slower == "a: 1.110 instead of 1.000 (+11%)"
    assert "(-13%); hint" in faster
    assert "no committed figure" in unknown


def test_the_guard_reads_instructions_where_they_are_counted() -> None:
    assert guard.read_instructions("123456,,instructions:u,99,100.00,,\n") == 123_456
    assert guard.read_instructions("<not supported>,,instructions:u,0,100.00,,\n") is None
