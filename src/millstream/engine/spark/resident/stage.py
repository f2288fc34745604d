"""A resident stage, as the driver sees it: a barrier job of Spark whose tasks are the slots.

Promises: `run` sends an epoch to all slots and returns their reports; `run_tasks` does the same with tasks between
epochs. Both raise `SlotLost` when a slot has ended or has lost a connection, the error of a health check, or the error
that another thread passed to `fail`. A stage that has failed cannot run again. `close` frees the task slots; slots that
do not end by themselves are killed.
Does not know: plans and reports, what a job does after a loss.

A barrier stage is Spark's own mode for tasks that talk to one another: all start together, or none. Spark would start
the whole stage again when a task dies; such attempts end at once, because only the engine knows the epoch to run."""

from __future__ import annotations

import logging
import pickle
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from millstream.engine.choice import is_one_process
from millstream.engine.epoch_level import LevelRequest
from millstream.engine.spark.calls import try_within
from millstream.engine.spark.failures import SparkFailed, translate_errors
from millstream.engine.spark.level_command import DeployedProgram
from millstream.engine.spark.resident.gathering import INDEX, Gathering, SlotsMissing
from millstream.engine.spark.resident.slot import DONE, LOST, READY, RUN, TASKS, SlotCommand, StageSettings
from millstream.engine.spark.resident.wire import Channel, Frame, Listener
from millstream.engine.spark.shared import use_own_pool

_log = logging.getLogger("millstream.spark")

_CANCEL_SECONDS = 5.0
_END_SECONDS = 2.0  # seconds for idle slots to end by themselves
_CAUSE_SECONDS = 1.0  # for the slot that another one misses to show that it has ended
_SECRET = 32  # bytes


class SlotLost(SparkFailed):
    """A slot of a resident stage has ended, or cannot reach another one."""

    def __init__(self, slot: int | None, reason: str) -> None:
        """`slot` is None if it is not known which one."""
        self.slot = slot
        super().__init__(f"{'a resident slot' if slot is None else f'resident slot {slot}'} is lost: {reason}")


class StageEnded(SparkFailed):
    """A resident stage was ended by this process."""


class ResidentStage:
    """The slots of one deployment. All methods but `run` may be called from other threads."""

    def __init__(self, context: Any, program: DeployedProgram, slots: int, group: str, name: str) -> None:
        self.context, self.slots = context, slots
        self._program, self._group, self._name = program, group, name
        self._channels: dict[int, Channel] = {}
        self._task_channels: dict[int, Channel] = {}
        self._run = self._call = 0
        self._calling = threading.Lock()
        self._problem: Exception | None = None
        self._gathering: Gathering | None = None
        self._job: threading.Thread | None = None
        self._selector = selectors.DefaultSelector()
        self._wake_up, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self.processes: dict[int, int] = {}  # of the slots that are ready

    def start(self, memory: int, scratch: str | None, seconds: float) -> None:
        """Start the job and wait until all slots are connected with one another."""
        listener = self._listen()
        settings = StageSettings(listener.address, secrets.token_bytes(_SECRET), memory, scratch)
        gathering = self._gathering = Gathering([listener], settings.secret, range(2 * self.slots))
        self._job = threading.Thread(target=self._run_job, args=(settings,), name="resident-stage", daemon=True)
        self._job.start()
        deadline = time.monotonic() + seconds
        try:
            channels = gathering.wait(seconds)
        except SlotsMissing as problem:
            raise SlotsMissing({index % self.slots for index in problem.missing}, seconds) from None
        finally:
            gathering.close()
        self._channels = {slot: channels[slot] for slot in range(self.slots)}
        self._task_channels = {slot: channels[self.slots + slot] for slot in range(self.slots)}
        for slot, channel in self._channels.items():
            self._selector.register(channel, selectors.EVENT_READ, slot)
        while len(self.processes) < self.slots:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                missing = next(slot for slot in range(self.slots) if slot not in self.processes)
                raise SlotLost(missing, f"it was not ready within {seconds:g} s")
            self._receive(remaining, None)

    def _listen(self) -> Listener:
        if is_one_process(str(self.context.master)):
            return Listener.on_host()
        conf = self.context.getConf()
        host = conf.get("spark.driver.host")
        return Listener.on_network(host, conf.get("spark.driver.bindAddress", host))

    def _run_job(self, settings: StageSettings) -> None:
        """Run the job of Spark, in a thread of its own."""
        context = self.context

        def run() -> list[str]:
            use_own_pool(context)
            context.setJobGroup(self._group, self._name, True)
            slots = context.parallelize(range(self.slots), self.slots).barrier()
            reasons: list[str] = slots.mapPartitionsWithIndex(SlotCommand(self._program, settings)).collect()
            return reasons

        try:
            reasons = translate_errors(run)
        except Exception as problem:  # another thread raises it
            is_started = len(self.processes) == self.slots
            self.fail(SlotLost(None, problem.message) if is_started and isinstance(problem, SparkFailed) else problem)
        else:
            self.fail(StageEnded(": ".join(("the resident slots have ended", *reasons[:1]))))

    def run(
        self, requests: Sequence[LevelRequest], find_problem: Callable[[], Exception | None], interval: float
    ) -> list[bytes]:
        """Run one epoch; return the reports and failures of all slots, by slot."""
        self._run += 1
        self._raise_problem()
        for slot, channel in self._channels.items():
            packed = pickle.dumps([{slot: level[slot]} if slot in level else {} for level in requests], 5)
            with self._explain_loss(slot):
                channel.send(Frame(RUN, self._run, blocks=(packed,)))
        results: dict[int, Sequence[bytes]] = {}
        while len(results) < self.slots:
            if not self._receive(interval, results) and (lost := find_problem()) is not None:
                raise lost
        return [data for slot in range(self.slots) for data in results[slot]]

    def run_tasks(
        self, by_slot: Mapping[int, bytes], find_problem: Callable[[], Exception | None], interval: float
    ) -> list[bytes]:
        """Run packed tasks of slots, also while an epoch runs; return their outcomes."""
        outcomes: list[bytes] = []
        with self._calling, selectors.DefaultSelector() as selector:
            self._call += 1
            selector.register(self._woken, selectors.EVENT_READ)
            waiting = set(by_slot)
            for slot in by_slot:
                selector.register(self._task_channels[slot], selectors.EVENT_READ, slot)
                with self._explain_loss(slot):
                    self._task_channels[slot].send(Frame(TASKS, self._call, blocks=(by_slot[slot],)))
            while waiting:
                ready = selector.select(interval)
                self._raise_problem()
                for slot in (key.data for key, _ in ready if key.data is not None):
                    with self._explain_loss(slot):
                        frame = self._task_channels[slot].receive()
                    if frame.run == self._call:
                        outcomes += frame.blocks
                        waiting.discard(slot)
                if not ready and (lost := find_problem()) is not None:
                    raise lost
        return outcomes

    @contextmanager
    def _explain_loss(self, slot: int) -> Iterator[None]:
        """Raise what has ended the stage, or `SlotLost`, for a connection that breaks."""
        try:
            yield
        except (OSError, EOFError) as problem:
            self._raise_problem()
            raise SlotLost(slot, _exit_reason(str(problem))) from None

    def _receive(self, seconds: float, results: dict[int, Sequence[bytes]] | None) -> bool:
        """Wait for frames; False if none has come in time."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            if key.fileobj is self._woken:
                self._raise_problem()
                continue
            slot = key.data
            frame = self._read(slot)
            if frame.kind == READY:
                self.processes[slot] = int(bytes(frame.blocks[0]))
            elif frame.kind == LOST:
                raise self._find_lost_slot(slot, frame)
            elif frame.kind == DONE and results is not None and frame.run == self._run:
                results[slot] = frame.blocks
        return bool(ready)

    def _read(self, slot: int) -> Frame:
        with self._explain_loss(slot):
            return self._channels[slot].receive()

    def _find_lost_slot(self, reporter: int, frame: Frame) -> SlotLost:
        """Return which slot is lost, and why: the one that another slot misses may have ended."""
        (missed,) = INDEX.unpack(frame.blocks[0])
        loss = SlotLost(missed, bytes(frame.blocks[1]).decode())
        deadline = time.monotonic() + _CAUSE_SECONDS
        while missed != reporter and (remaining := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(remaining):
                if key.data != missed:
                    self._selector.unregister(key.fileobj)
                    continue
                try:
                    received = self._channels[missed].receive()
                except (OSError, EOFError) as problem:
                    return SlotLost(missed, _exit_reason(str(problem)))
                if received.kind == LOST:  # it has failed by itself, or misses another slot
                    return SlotLost(missed, bytes(received.blocks[1]).decode())
        return loss

    def _raise_problem(self) -> None:
        if self._problem is not None:
            raise self._problem

    def fail(self, problem: Exception) -> None:
        """Make `start` or `run` raise this error, now or when it is called."""
        self._problem = self._problem or problem
        if self._gathering is not None:
            self._gathering.fail(problem)
        with suppress(OSError):
            self._wake_up.send(b"!")

    def cancel(self, reason: str = "the epoch was cancelled") -> None:
        """End the stage, whatever its slots do: Spark kills their processes."""
        self.fail(StageEnded(reason))
        try_within("cancel resident slots", lambda: self.context.cancelJobGroup(self._group), _CANCEL_SECONDS)

    def close(self) -> None:
        """End the stage. Idle slots end by themselves, others are killed."""
        was_running = self._problem is None
        self.fail(StageEnded("the resident stage was closed"))
        for channel in (*self._channels.values(), *self._task_channels.values()):
            channel.close()
        if self._job is not None:
            self._job.join(_END_SECONDS if was_running else 0)
            if self._job.is_alive():
                self.cancel()
        self._selector.close()
        self._wake_up.close()
        self._woken.close()


def _exit_reason(problem: str) -> str:
    """Return why a connection ended, with the message that Spark has for lost workers, because memory may be the
    reason."""
    return f"Python worker exited unexpectedly, or its connection broke{f' ({problem})' if problem else ''}"
