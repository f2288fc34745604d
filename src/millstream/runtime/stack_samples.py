"""Samples of the call stack of a task while it works, for flame graphs.

Promises: a task without a sampler runs no line of this module; the number and depth of stacks is bounded; where the
operating system measures the CPU time of a thread, samples are marked as on or off the CPU.
Does not know: operators, reports."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from types import CodeType, FrameType

MAX_STACKS = 1_000  # distinct stacks in one report
OTHER = "(other stacks)"
_PACKAGE = PurePath(__file__).parent.parent
_BUSY = 0.5  # a thread that used this share of an interval was on the CPU

Stack = tuple[str, ...]  # the outermost call first


@dataclass(frozen=True, slots=True)
class Sampling:
    """How stacks are sampled: the time between two samples in seconds, and the depth of a stack."""

    interval: float
    depth: int


class StackSampler:
    """Samples the thread that enters it, in a thread of its own, until it is left. A stack begins below the call of
    `outermost`."""

    def __init__(self, sampling: Sampling, outermost: CodeType) -> None:
        self._sampling, self._outermost = sampling, outermost
        self._stopped = threading.Event()
        self._is_working = False  # true while samples are taken, not while this sampler starts and stops
        self._on: Counter[Stack] = Counter()
        self._off: Counter[Stack] = Counter()
        self._names: dict[CodeType, str] = {}

    def start(self) -> None:
        """Sample the current thread from now on."""
        watched = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(watched) if hasattr(time, "pthread_getcpuclockid") else None
        self._cpu = self._cpu_time()
        self._thread = threading.Thread(target=self._run, args=(watched,), name="stack-samples", daemon=True)
        self._thread.start()
        self._is_working = True

    def stop(self) -> dict[str, list[tuple[Stack, int]]]:
        """Stop, and return how often each stack was seen, on and off the CPU."""
        self._is_working = False
        self._stopped.set()
        self._thread.join()
        return {"on": list(self._on.items()), "off": list(self._off.items())}

    def _run(self, watched: int) -> None:
        while not self._stopped.wait(self._sampling.interval):
            frame = sys._current_frames().get(watched)
            stack = () if frame is None else self._describe(frame)
            cpu, before = self._cpu_time(), self._cpu
            self._cpu = cpu
            if stack and self._is_working:
                is_on = cpu - before >= _BUSY * self._sampling.interval or self._clock is None
                stacks = self._on if is_on else self._off
                stacks[stack if stack in stacks or len(stacks) < MAX_STACKS else (OTHER,)] += 1

    def _cpu_time(self) -> float:
        return 0.0 if self._clock is None else time.clock_gettime(self._clock)

    def _describe(self, frame: FrameType) -> Stack:
        """Return the calls inside the outermost one; nothing if the thread is not inside it."""
        names: list[str] = []
        current: FrameType | None = frame
        while current is not None and current.f_code is not self._outermost:
            names.append(self._name(current.f_code))
            current = current.f_back
        return () if current is None else tuple(names[: -self._sampling.depth - 1 : -1])

    def _name(self, code: CodeType) -> str:
        name = self._names.get(code)
        if name is None:
            name = f"{code.co_qualname} ({_short_name_of_file(code.co_filename)}:{code.co_firstlineno})"
            self._names[code] = name
        return name


def _short_name_of_file(file: str) -> str:
    """Return a short name of a file: from the package for this one, else with its folder."""
    path = PurePath(file)
    if path.is_relative_to(_PACKAGE):
        return f"millstream/{path.relative_to(_PACKAGE).as_posix()}"
    return "/".join(path.parts[-2:])
