"""The output of the sample programs and of the keyed job, computed by plain Python loops over their input.

Promises: imports nothing of the engine, only the input records, so that it finds errors that the runs with and without
faults have in common: `compute_reference` of the simulation and `run_without_faults` of the keyed job use it.
Does not know: epochs, subtasks, state, watermarks. The input has no late records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from millstream_chaos.samples import sample_input
from millstream_chaos.samples.sample_input import Event

Rows = Iterable[Any]
Session = tuple[int, int, list[Event]]  # (start, end, records) of a window


def compute_rows(program: str, times: int = 1) -> list[str]:
    """Compute the rows of a sample program, as text, sorted, as the sink of simulations returns them."""
    return sorted(map(repr, OUTPUTS[program](times)))


# ------------------------------------------------------------------------------------------------------------- input


def _one_split(times: int, count: int = sample_input.ONE_SPLIT) -> tuple[Event, ...]:
    return sample_input.events(count, times=times)


def _many_splits(times: int) -> list[Event]:
    return [event for split in sample_input.many_splits(times) for event in split]


def _by_key(events: Iterable[Event]) -> dict[str, list[Event]]:
    groups: dict[str, list[Event]] = {}
    for event in events:
        groups.setdefault(event[0], []).append(event)
    return groups


# ----------------------------------------------------------------------------------------------------------- windows


def _tumbling(events: Iterable[Event], size: int) -> list[Session]:
    """Return the windows of one key, in order."""
    windows: dict[int, list[Event]] = {}
    for event in events:
        windows.setdefault(event[1] // size * size, []).append(event)
    return [(start, start + size, windows[start]) for start in sorted(windows)]


def _sessions(events: Iterable[Event], gap: int) -> list[Session]:
    """Return the sessions of one key, in order; windows that touch are merged."""
    sessions: list[Session] = []
    for event in sorted(events, key=lambda event: event[1]):
        if sessions and event[1] <= sessions[-1][1]:
            start, _, members = sessions.pop()
            sessions.append((start, event[1] + gap, [*members, event]))
        else:
            sessions.append((event[1], event[1] + gap, [event]))
    return sessions


def _collect(events: Iterable[Event], windows: Callable[[list[Event]], list[Session]]) -> Iterator[Any]:
    """Yield each window with its sorted values, and the number of windows of its key so far."""
    for key, key_events in _by_key(events).items():
        for number, (start, end, members) in enumerate(windows(key_events), 1):
            yield key, start, end, sorted(value for _, _, value in members), number


# ---------------------------------------------------------------------------------------------------------- programs


def _keyed_timers(times: int) -> Rows:
    for key, events in _by_key(_many_splits(times)).items():
        for start, _, members in _tumbling(events, 50):
            yield key, start + 49, len(members)


def _running_sums(times: int) -> Iterator[tuple[str, int, int]]:
    sums: dict[str, int] = {}
    for key, _, value in _one_split(times):
        sums[key] = sums.get(key, 0) + value
        yield key, value, sums[key]


def _sliding(times: int) -> Rows:
    for key, events in _by_key(_many_splits(times)).items():
        windows: dict[int, list[int]] = {}
        for _, at, value in events:
            for start in (at // 40 * 40, at // 40 * 40 - 40):
                windows.setdefault(start, []).append(value)
        for start, values in windows.items():
            yield key, start, sum(values) / len(values)


def _columns(times: int) -> Rows:
    for key, events in _by_key(_many_splits(times)).items():
        for start, end, members in _tumbling(events, 60):
            values = [value for _, _, value in members]
            fields = {"key": key, "window_start": start, "window_end": end}
            yield _Row(fields | {"total": sum(values), "n": len(values), "top": max(values)})


class _Row:
    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self._fields.items())})"


def _reduce(times: int) -> Rows:
    for key, events in _by_key(_one_split(times)).items():
        for count in range(1, len(events) + 1):
            yield key, max(at for _, at, _ in events[:count]), sum(value for _, _, value in events[:count])


def _connect(times: int) -> Rows:
    right = [event for event in _many_splits(times) if event[2] < 9]
    return [(one[0], one[2], other[2]) for one in _one_split(times, 20) for other in right if one[0] == other[0]]


def _union(times: int) -> Rows:
    ones = [(key, at, 1) for key, at, _ in [*_one_split(times), *_many_splits(times)]]
    return _collect(ones, lambda events: _tumbling(events, 100))


def _broadcast(times: int) -> Rows:
    rules = {name: by for name, by in sample_input.RULES if by}
    for name, by in sample_input.RULES:
        if by == 0:
            del rules[name]
    for key, _, value in _many_splits(times):
        yield key, value, sorted(name for name, by in rules.items() if value % by == 0)


def _side_output(times: int) -> Rows:
    events = _many_splits(times)
    odd = [event for event in events if event[2] % 2]
    yield from (str(event) for event in events if event[2] % 2 == 0)
    yield from map(str, _collect(odd, lambda own: _tumbling(own, 90)))


def _count_window(times: int) -> Rows:
    for key, events in _by_key(_one_split(times)).items():
        for end in range(3, len(events) + 1, 3):
            three = events[end - 3 : end]
            yield key, three[0][1], sum(value for _, _, value in three)


def _reminders(times: int) -> Rows:
    totals: dict[int, list[int]] = {}
    for _, value, total in _running_sums(times):
        totals.setdefault(value % 3, []).append(total)
    return [(key, 1 << 40, sorted(own)) for key, own in totals.items()]


def _interval_join(times: int) -> Rows:
    for key, at, value in _one_split(times, 20):
        for other, when, joined in _many_splits(times):
            if key == other and at - 30 <= when <= at + 10:
                yield key, value, joined, max(at, when)


def _co_group(times: int) -> Rows:
    left = [(key, at, (0, value)) for key, at, value in _one_split(times, 20)]
    right = [(key, at, (1, value)) for key, at, value in _many_splits(times) if value % 2 == 0]
    both: list[Any] = [*left, *right]
    for events in _by_key(both).values():
        for _, _, members in _sessions(events, 30):
            values: list[Any] = [value for _, _, value in members]
            yield tuple(sorted(value for side, value in values if side == wanted) for wanted in (0, 1))


def _last_two(events: list[Event]) -> list[Session]:
    return [(start, end, members[-2:]) for start, end, members in _tumbling(events, 100)]


def _numbers(count: int = 24) -> list[int]:
    return [number for split in sample_input.numbers(count) for number in split]


def _bulk(_: int) -> Rows:
    pairs = [(number, number * 1000) for number in _numbers()]
    while sum(value for _, value in pairs) > 60:
        pairs = [(number, value // 2 + number % 3) for number, value in pairs]
    return pairs


def _delta(_: int) -> Rows:
    components: dict[int, set[int]] = {}
    for number in _numbers(20):
        one, other = number % 23, number * 5 % 23
        merged = components.get(one, {one}) | components.get(other, {other})
        components.update(dict.fromkeys(merged, merged))
    return [(vertex, min(members)) for vertex, members in components.items()]


def _unbounded(_: int) -> Rows:
    for number in _numbers(9):
        value, steps = number + 2, 0
        while value != 1:
            value, steps = value // 2 if value % 2 == 0 else 3 * value + 1, steps + 1
        yield number, 1, steps


def _replayed(_: int) -> Rows:
    model = 5
    for epoch in range(6):
        model = (model + sum(_numbers()) + epoch) % 1009
        yield model


def _splitmix64(number: int) -> int:
    mask = (1 << 64) - 1
    x = (number + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def _stale(_: int) -> Rows:
    def apply(value: int, updates: list[int]) -> int:
        return (value * 17 + sum(updates)) % 9973

    groups = [[number for number in sorted(_numbers()) if _splitmix64(number) % 5 == worker] for worker in range(5)]
    parameters = {0: 0, 1: 1, 2: 2}
    for first in range(0, 8, 3):  # workers exchange their updates after every third round
        rounds: dict[int, dict[int, list[int]]] = {}
        for group in groups:
            seen = dict(parameters)
            for number in range(first, min(first + 3, 8)):
                base = sum(seen.values()) + number
                updates = {value % 3: (sum(group) * 31 + base * (value + 7)) % 1009 for value in group}
                for key, update in updates.items():
                    rounds.setdefault(number, {}).setdefault(key, []).append(update)
                    seen[key] = apply(seen[key], [update])
        for number in sorted(rounds):
            for key, collected in rounds[number].items():
                parameters[key] = apply(parameters[key], collected)
    return list(parameters.items())


def _per_round(_: int) -> Rows:
    numbers = _numbers()
    for _ in range(5):
        sums: dict[int, int] = {}
        for number in numbers:
            sums[number % 5] = sums.get(number % 5, 0) + number
        numbers = [(total * 7 + 3) % 1009 for total in sums.values()]
        yield from numbers


def _vertices(_: int) -> Rows:
    edges = [(number % 9, number * 5 % 9, float(number % 4)) for number in _numbers(20)]
    distances = {vertex: 0.0 if vertex == 3 else math.inf for edge in edges for vertex in edge[:2]}
    for _ in distances:
        for source, target, weight in edges:
            distances[target] = min(distances[target], distances[source] + weight)
    return list(distances.items())


def _entities(_: int) -> Rows:
    numbers = [number for split in sample_input.numbers(12) for number in split]
    for account in range(4):
        deposits = [number for number in numbers if number % 4 == account]
        yield ["account", str(account), sum(deposits), sum(number**2 for number in deposits)]
    for number in numbers:
        path = [number % 4]
        for _ in range(number % 6):
            path.append((3 * path[-1] + number) % 4)
        yield ["hop", number, path]


def _clustering(_: int) -> Rows:
    neighbors: dict[int, set[int]] = {}
    for number in _numbers(24):
        ends = {number % 9, number * 4 % 7}
        for vertex in ends:
            neighbors.setdefault(vertex, set()).update(ends - {vertex})
    for vertex, others in neighbors.items():
        closed = sum(one in neighbors[other] for one in others for other in others) / 2
        yield vertex, closed / max(len(others) * (len(others) - 1) / 2, 1)


def _samples(count: int) -> list[tuple[int, float, float]]:
    """Return each number, its feature and its label."""
    return [(number, float(number % 7), 3.0 * (number % 7) + 1.0) for number in sorted(_numbers(count))]


def _regression(_: int) -> Rows:
    samples, slope, level = _samples(20), 0.0, 0.0
    for _ in range(3):
        errors = [(slope * x + level - y, x) for _, x, y in samples]
        slope -= 0.05 / len(samples) * sum(error * x for error, x in errors)
        level -= 0.05 / len(samples) * sum(error for error, _ in errors)
    return [(number, round(slope * x + level, 6)) for number, x, _ in samples]


def _online(_: int) -> Rows:
    samples = _samples(60)
    coefficients, sums, squares = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    for version, start in enumerate(range(0, len(samples) - 6, 7), 1):
        errors = [(coefficients[0] * x + coefficients[1] - y, x) for _, x, y in samples[start : start + 7]]
        gradients = [sum(error * x for error, x in errors) / 7, sum(error for error, _ in errors) / 7]
        for i, gradient in enumerate(gradients):
            root = math.sqrt(squares[i] + gradient**2)
            sums[i] += gradient - (root - math.sqrt(squares[i])) / 0.1 * coefficients[i]
            squares[i] += gradient**2
            coefficients[i] = -sums[i] / ((0.1 + root) / 0.1)
        yield version, round(coefficients[0], 6)


OUTPUTS: dict[str, Callable[[int], Rows]] = {
    "keyed_timers": _keyed_timers,
    "ordered_timers": _running_sums,
    "tumbling": lambda times: _collect(_many_splits(times), lambda events: _tumbling(events, 60)),
    "sliding": _sliding,
    "session": lambda times: _collect(
        (event for event in _many_splits(times) if event[2] % 3), lambda events: _sessions(events, 30)
    ),
    "columns": _columns,
    "reduce": _reduce,
    "connect": _connect,
    "union": _union,
    "broadcast": _broadcast,
    "side_output": _side_output,
    "count_window": _count_window,
    "reminders": _reminders,
    "interval_join": _interval_join,
    "co_group": _co_group,
    "evicted": lambda times: _collect(_one_split(times), _last_two),
    "entities": _entities,
    "operator_state": lambda times: [(number, event[2]) for number, event in enumerate(_one_split(times), 1)],
    "iteration_bulk": _bulk,
    "iteration_delta": _delta,
    "iteration_unbounded": _unbounded,
    "iteration_replayed": _replayed,
    "iteration_stale": _stale,
    "iteration_per_round": _per_round,
    "iteration_vertices": _vertices,
    "graph_clustering": _clustering,
    "learning_regression": _regression,
    "learning_online": _online,
    "ends_of_time": lambda _: _collect(
        (event for split in sample_input.ends_of_time() for event in split), lambda events: _tumbling(events, 10)
    ),
}


# ------------------------------------------------------------------------------------------------------ the keyed job


def compute_lines(lines: Iterable[str], *, bucket: int, window: int) -> list[str]:
    """Compute the output of the keyed job for lines `key sequence time value`, with the lines of a key in order."""
    output: list[str] = []
    running: dict[str, tuple[int, int]] = {}
    seconds: dict[tuple[str, int], int] = {}
    windows: dict[tuple[str, int], tuple[int, int]] = {}
    for line in lines:
        key, sequence, at, number = line.split(" ")
        value, due, start = int(number), (int(at) // bucket + 1) * bucket, int(at) // window * window
        count, total = running.get(key, (0, 0))
        running[key] = count + 1, total + value
        output.append(f"S {key} {sequence} {count + 1} {total + value}")
        seconds[key, due] = seconds.get((key, due), 0) + value
        count, total = windows.get((key, start), (0, 0))
        windows[key, start] = count + 1, total + value
    output += [f"T {key} {due} {total}" for (key, due), total in seconds.items()]
    return [*output, *(f"W {key} {start} {count} {total}" for (key, start), (count, total) in windows.items())]


def compute_sql_lines(lines: Iterable[str], *, window: int) -> list[str]:
    """Compute the output of the SQL form of the keyed job for the same input."""
    events: dict[str, list[tuple[int, int]]] = {}
    for line in lines:
        key, _, time, number = line.split(" ")
        events.setdefault(key, []).append((int(time), int(number)))
    output: list[str] = []
    for key, key_events in events.items():
        total, windows = 0, dict[int, tuple[int, int]]()
        for position, (at, value) in enumerate(sorted(key_events, key=lambda event: event[0]), 1):
            total += value
            output.append(f"S {key} {position} {at} {total}")
            count, summed = windows.get(at // window, (0, 0))
            windows[at // window] = count + 1, summed + value
        output += [f"W {key} {start * window} {count} {summed}" for start, (count, summed) in windows.items()]
    return output
