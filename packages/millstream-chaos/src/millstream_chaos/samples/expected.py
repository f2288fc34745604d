"""The output of the sample programs and of the keyed job, computed by plain Python loops over their input.

Promises: imports nothing of the engine, only the input records, so that it finds errors that the runs with and without
faults have in common: `compute_reference` of the simulation and `run_without_faults` of the keyed job use it.
Does not know: epochs, subtasks, state, watermarks. The input has no late records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from millstream_chaos.samples import sample_input
from millstream_chaos.samples.sample_input import Event

Rows = Iterable[Any]
Session = tuple[int, int, list[Event]]  # start, end, records


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
    "operator_state": lambda times: [(number, event[2]) for number, event in enumerate(_one_split(times), 1)],
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
