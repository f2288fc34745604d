"""Plots of a run as SVG files: ratios with their intervals, latencies as distributions, growth with state.

Promises: standard library only; text, not outlines; no plot is made of nothing.
Does not know: how contestants are run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

from benchmarks.compare import Rounds
from benchmarks.intervals import Interval

WIDTH, LEFT, ROW, TOP = 900, 330, 22, 34
_COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#555555")


def draw_all(folder: Path, all_rounds: Sequence[Rounds]) -> list[str]:
    """Write the plots that the rounds give, and return their names."""
    drawings = {
        "throughput.svg": draw_ratios(_throughput(all_rounds)),
        "latency.svg": draw_distributions(_latencies(all_rounds)),
        "growth.svg": draw_lines("state, keys", "epoch, ms", _growth(all_rounds)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in drawings.items():
        (folder / name).unlink(missing_ok=True)
        if drawing:
            (folder / name).write_text(drawing)
    return [name for name, drawing in drawings.items() if drawing]


def _throughput(all_rounds: Sequence[Rounds]) -> list[tuple[str, Interval]]:
    return [
        (f"{rounds.benchmark.name} / {peer.name}", ratio)
        for rounds in all_rounds
        if rounds.benchmark.higher_is_better and not rounds.benchmark.growth
        for peer in rounds.played()
        if peer != rounds.benchmark.ours and (ratio := rounds.ratio(peer)) is not None
    ]


def _latencies(all_rounds: Sequence[Rounds]) -> list[tuple[str, list[float]]]:
    found = []
    for rounds in all_rounds:
        if rounds.benchmark.unit != "ms p50" or rounds.benchmark.growth:
            continue
        for contestant in rounds.played():
            samples = [sample for result in rounds.results(contestant) for sample in result.get("samples_ms", [])]
            if samples:
                found.append((f"{rounds.benchmark.name}: {contestant.name}", samples))
    return found


def _growth(all_rounds: Sequence[Rounds]) -> list[tuple[str, list[tuple[float, float]]]]:
    lines: dict[str, list[tuple[float, float]]] = {"p50": [], "p99": []}
    for rounds in all_rounds:
        if rounds.benchmark.name != "growth":
            continue
        for contestant in rounds.played():
            for name, points in lines.items():
                value = rounds.middle(contestant, lambda outcome, name=name: (outcome.result or {}).get(f"{name}_ms"))
                keys = rounds.middle(contestant, lambda outcome: (outcome.result or {}).get("keys"))
                if value is not None and keys is not None:
                    points.append((keys, value))
    return [(name, points) for name, points in lines.items() if points]


def draw_ratios(ratios: Sequence[tuple[str, Interval]]) -> str:
    """Return bars on a logarithmic scale, from 1, with the interval of each; empty if there is none."""
    if not ratios:
        return ""
    low = min(0.5, *(interval.low for _, interval in ratios)) * 0.9
    high = max(2.0, *(interval.high for _, interval in ratios)) * 1.1
    scale = _Scale(low, high, LEFT, WIDTH - 70)
    bottom = TOP + ROW * len(ratios)
    parts = [_text(8, 20, "throughput of millstream as a multiple of a peer's, with 95 % intervals", size=14)]
    parts += [_tick(scale.at(value), f"{value:g}×", bottom) for value in scale.ticks()]
    for index, (name, interval) in enumerate(ratios):
        y = TOP + ROW * index
        one, end = scale.at(1.0), scale.at(interval.median)
        colour = _COLOURS[0] if interval.median >= 1 else _COLOURS[1]
        parts.append(_text(LEFT - 8, y + 15, name, anchor="end"))
        parts.append(
            f'<rect x="{min(one, end):.1f}" y="{y + 4}" width="{abs(end - one):.1f}" height="14" fill="{colour}"/>'
        )
        ends = scale.at(interval.low), scale.at(interval.high)
        parts.append(_line(ends[0], y + 11, ends[1], y + 11, "#111111", 2))
        parts.append(_text(max(one, end, ends[1]) + 5, y + 15, f"{interval.median:.3g}"))
    return _svg(bottom + 24, parts)


def draw_distributions(samples: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Return the cumulative distribution of each list of milliseconds; empty if there is none."""
    curves = []
    for name, values in samples:
        ordered = sorted(values)
        curves.append((name, [(value, 100 * (i + 1) / len(ordered)) for i, value in enumerate(ordered)]))
    return draw_lines("latency, ms", "% of samples", curves)


def draw_lines(x_title: str, y_title: str, lines: Sequence[tuple[str, Sequence[tuple[float, float]]]]) -> str:
    """Return lines through points, on a logarithmic scale of x; empty if there is none."""
    points = [point for _, line in lines for point in line]
    if not points:
        return ""
    xs = _Scale(min(x for x, _ in points) * 0.95, max(x for x, _ in points) * 1.05, 70, WIDTH - 20)
    top, bottom = TOP, 360
    highest = max(y for _, y in points)
    parts = [_text(8, 20, f"{y_title} against {x_title}", size=14)]
    parts += [_tick(xs.at(value), f"{value:,.12g}", bottom) for value in xs.ticks()]
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = bottom - share * (bottom - top)
        parts += [_line(70, y, WIDTH - 20, y, "#dddddd", 1), _text(64, y + 4, f"{share * highest:.4g}", anchor="end")]
    for index, (name, line) in enumerate(lines):
        colour = _COLOURS[index % len(_COLOURS)]
        path = " ".join(f"{xs.at(x):.1f},{bottom - y / highest * (bottom - top):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(_text(80, bottom + 44 + 18 * index, name, colour=colour))
    return _svg(bottom + 44 + 18 * len(lines), parts)


class _Scale:
    """A logarithmic scale from `low` to `high`, drawn from `start` to `end`."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._start = math.log(low), start
        self._factor = (end - start) / (math.log(high) - self._low)
        self._range = (low, high)

    def at(self, value: float) -> float:
        return self._start + (math.log(value) - self._low) * self._factor

    def ticks(self) -> list[float]:
        low, high = self._range
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        steps = (1, 2, 5) if high / low < 1000 else (1,)
        return [step * 10.0**power for power in exponents for step in steps if low <= step * 10.0**power <= high]


def _svg(height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height:.0f}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = "#111111") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def _tick(x: float, label: str, bottom: float) -> str:
    return _line(x, TOP, x, bottom, "#dddddd", 1) + _text(x, bottom + 16, label, anchor="middle")
