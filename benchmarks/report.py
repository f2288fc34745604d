"""A run as RESULTS.md: one table, what was missed, what was noisy, and the plots.

Promises: a ratio is quoted by the end of its interval that is worse for millstream; a run of less than all benchmarks
or of less than full size says so in its first lines; the results before it move to history/.
Does not know: how contestants are run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.compare import Rounds, Verdict
from benchmarks.contest import Contestant, Of
from benchmarks.intervals import Interval

HEAD = (
    "benchmark", "millstream", "CPU", "peak memory", "against", "its figure", "CPU", "peak memory",
    "ratio, 95 % interval", "to reach", "quoted",
)  # fmt: skip


def results(header: dict[str, Any], all_rounds: Sequence[Rounds], plots: Sequence[str], whole: bool) -> str:
    """Return the text of RESULTS.md."""
    parts = ["# Results", _kind(header, whole), _setting(header), _how_to_read(), table(all_rounds)]
    for title, lines in (
        ("What failed", [line for rounds in all_rounds for line in rounds.failures()]),
        ("Goals that were missed", [line for rounds in all_rounds for line in rounds.missed()]),
        (
            "Notes",
            [f"{rounds.benchmark.name}: {rounds.benchmark.note}" for rounds in all_rounds if rounds.benchmark.note],
        ),
        ("Noise", [line for rounds in all_rounds for line in rounds.noise()]),
    ):
        parts.append(f"## {title}\n\n" + ("\n".join(f"- {line}" for line in lines) if lines else "Nothing."))
    if plots:
        parts.append("## Plots\n\n" + "\n\n".join(f"![{Path(plot).stem}]({plot})" for plot in plots))
    return "\n\n".join(parts) + "\n"


def _kind(header: dict[str, Any], whole: bool) -> str:
    if whole:
        return "The newest complete run. Written by `make bench`; older runs are in [history](history/)."
    return (
        f"**Not a complete run.** This is {header['kind']}, {header['rounds']} round(s) at {header['scale']:g} of full "
        "size: it shows that the suite works, and its figures are not to be quoted. Older runs are in "
        "[history](history/)."
    )


def _setting(header: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    return (
        f"- Begun: {header['started']}; load at the start: {header['load']}\n- Commit: {header['commit']}\n"
        f"- Machine: {header['machine']}\n- Versions: {versions}\n"
        f"- Rounds: {header['rounds']}; scale: {header['scale']:g}"
    )


def _how_to_read() -> str:
    return (
        "Contestants take turns in every round; a ratio compares two runs of one round, and is followed by its 95 % "
        "bootstrap interval. A goal is judged by the end of the interval that is worse for millstream, which is what "
        "may be quoted. CPU is CPU time of all processes of a contestant for a million records by the clock, and for "
        "its whole run; memory is the peak of all its processes. [The suite](README.md) says how each is measured."
    )


def table(all_rounds: Sequence[Rounds]) -> str:
    """Return the table: a line for each pair of contestants, then one for each of their queries."""
    lines = [list(HEAD), ["---"] * len(HEAD)]
    for rounds in all_rounds:
        lines.extend(_lines(rounds))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _lines(rounds: Rounds) -> list[list[str]]:
    benchmark = rounds.benchmark
    peers = [each for each in rounds.played() if each != benchmark.ours]
    lines = []
    for index, peer in enumerate([None, *peers] if not peers or benchmark.ours.goals else peers):
        title = f"**{benchmark.name}**: {benchmark.title}" if index == 0 else benchmark.name
        own = _side(rounds, benchmark.ours)
        if peer is None:
            goals = _goals(rounds.verdicts(benchmark.ours))
            lines.append([title, *own, "", "", "", "", "", *goals])
            continue
        ratio = rounds.ratio(peer)
        goals = _goals(rounds.verdicts(peer))
        lines.append([title, *own, peer.name, *_side(rounds, peer), _interval(ratio), *goals])
        for query, interval in rounds.query_ratios(peer).items():
            figures = [_number(rounds.query_figure(each, query)) for each in (benchmark.ours, peer)]
            skipped = "in no mean" if query in benchmark.not_compared else ""
            sides = [figures[0], "", "", peer.name, figures[1], "", ""]
            lines.append([f"{benchmark.name} {query}", *sides, _interval(interval), "", skipped])
    return lines


def _side(rounds: Rounds, contestant: Contestant) -> list[str]:
    """Return the figure, the CPU time and the memory of a contestant."""
    figure = rounds.figure(contestant)
    if figure is None:
        return ["failed", "", ""]
    micros = rounds.middle(contestant, lambda outcome: (outcome.result or {}).get("cpu_us"))
    whole = rounds.middle(contestant, lambda outcome: outcome.cpu_seconds)
    cpu = ([] if micros is None else [f"{_number(micros)} s/M"]) + ([] if whole is None else [f"{_number(whole)} s"])
    memory = rounds.middle(contestant, lambda outcome: outcome.peak_mib)
    details = _details(rounds, contestant)
    text = f"{_number(figure.median)} {rounds.benchmark.unit}" + (f" ({details})" if details else "")
    return [text, ", ".join(cpu), "" if memory is None else f"{_number(memory)} MiB"]


def _details(rounds: Rounds, contestant: Contestant) -> str:
    result = rounds.results(contestant)[-1]
    parts = []
    if "timed" in result:
        parts.append(f"{_number(float(result['timed']))} s timed")
    if "p99_ms" in result:
        parts.append(f"p99 {_number(float(result['p99_ms']))} ms of {result['samples']}")
    if "full_bytes" in result:
        parts.append(f"{result['bytes']:,.0f} of {result['full_bytes']:,.0f} bytes")
    failed = rounds.rounds_run() - len(rounds.outcomes(contestant))
    if failed > 0:
        parts.append(f"failed in {failed} of {rounds.rounds_run()} rounds")
    return ", ".join(parts)


def _goals(verdicts: Sequence[Verdict]) -> list[str]:
    words = {True: "met", False: "**missed**", None: "not judged: too few rounds"}
    goals = "<br>".join(f"{verdict.goal}: {words[verdict.is_met]}" for verdict in verdicts)
    quoted = "<br>".join(
        _number(verdict.quoted) + (f" {verdict.goal.of.value}" if verdict.goal.of not in (Of.RATIO, Of.FIGURE) else "")
        for verdict in verdicts
    )
    return [goals, quoted]


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return ""
    if not interval.is_quotable:
        return f"{_number(interval.median)} ({interval.samples} round{'s' if interval.samples > 1 else ''})"
    return f"{_number(interval.median)} ({_number(interval.low)} to {_number(interval.high)})"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write(path: Path, text: str, started: str) -> None:
    """Write RESULTS.md; what it held moves to history/, under the time at which this run began."""
    history = path.with_name("history")
    history.mkdir(exist_ok=True)
    if path.exists() and path.read_text().startswith("# Results\n"):
        shutil.move(path, history / f"before-{started.replace(':', '')}.md")
    path.write_text(text)
