"""One slot of a resident stage: a task of Spark that runs epochs until the driver ends the stage.

Promises: a slot runs its subtasks of all levels, with the tasks of `epoch_level`; a level begins when every channel
that it reads is complete. Reports and failures go straight to the driver. Tasks between epochs have a connection and a
thread of their own, so that a long one stops no epoch. The slot ends when the driver closes its connection, or when the
connection to another slot breaks, which it reports.
Does not know: why epochs run, what a stage that has ended means for a job."""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pyspark import BarrierTaskContext

from millstream.engine.contract import Deployment
from millstream.engine.cycles import collect_cycles
from millstream.engine.dependencies import in_working_directory
from millstream.engine.epoch_level import LevelRequest, run_level
from millstream.engine.spark.level_command import DeployedProgram, load_deployment
from millstream.engine.spark.resident.gathering import INDEX, Gathering, greet
from millstream.engine.spark.resident.inbox import Inbox, PeerLost
from millstream.engine.spark.resident.peers import Peers
from millstream.engine.spark.resident.routes import Routes, read_routes
from millstream.engine.spark.resident.wire import Channel, ConnectionRefused, Frame, Listener, connect
from millstream.engine.spark.tasks_job import run_packed_tasks
from millstream.errors import MillstreamError
from millstream.runtime import block as blocks
from millstream.runtime.block import BlockKind

READY, RUN, DONE, LOST, TASKS = 3, 4, 5, 6, 7  # kinds of the frames between driver and slots

_SWITCH_INTERVAL = 0.0005  # seconds; a thread that reads blocks must not wait 5 ms for one that computes
_PEER_SECONDS = 300.0


@dataclass(frozen=True)
class StageSettings:
    """What every slot of a stage is given. `driver` is the address of the driver; `memory` is how many bytes of
    received blocks a slot keeps in memory."""

    driver: str
    secret: bytes
    memory: int
    scratch: str | None


class SlotCommand:
    """The function of a stage's tasks."""

    def __init__(self, program: DeployedProgram, settings: StageSettings) -> None:
        self._program, self._settings = program, settings

    def __call__(self, slot: int, partition: Iterable[Any]) -> Iterator[str]:
        """Run a slot until the stage ends."""
        list(partition)
        context = BarrierTaskContext.get()
        slots = len(context.getTaskInfos())
        try:
            driver, tasks = (
                greet(connect(self._settings.driver, self._settings.secret), index) for index in (slot, slots + slot)
            )
        except (OSError, ConnectionRefused) as problem:
            # Spark repeats a stage that has lost a task; the driver no longer listens, and starts a new one by itself
            return iter((f"slot {slot} cannot connect to the driver: {problem}",))
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_SWITCH_INTERVAL)
        try:
            self._serve(slot, context, driver, tasks)
        except Exception as problem:  # the driver gets the failure sooner from here than from Spark
            index = problem.slot if isinstance(problem, PeerLost) else slot
            text = problem.message if isinstance(problem, MillstreamError) else traceback.format_exc()
            with suppress(OSError):
                driver.send(Frame(LOST, blocks=(INDEX.pack(index), text.encode())))
        finally:
            sys.setswitchinterval(interval)
            tasks.close()
            driver.close()
        return iter(())

    def _serve(self, slot: int, context: BarrierTaskContext, driver: Channel, tasks: Channel) -> None:
        deployment = load_deployment(self._program)
        scratch = self._settings.scratch
        inbox = Inbox(self._settings.memory, scratch if scratch is not None and os.path.isdir(scratch) else None)
        routes = read_routes(deployment.plan, slot)
        hosts = [info.address.rpartition(":")[0] for info in context.getTaskInfos()]
        channels = connect_peers(slot, routes.peers(slot), hosts, self._settings.secret, context.allGather)
        name = f"r{context.stageId()}.{context.taskAttemptId()}"
        serving = threading.Thread(target=serve_tasks, args=(tasks, self._program), name="resident-tasks", daemon=True)
        try:
            with in_working_directory(deployment.dependencies):  # of the process, and so of both threads
                serving.start()
                driver.send(Frame(READY, blocks=(str(os.getpid()).encode(),)))
                Slot(slot, deployment, routes, Peers(slot, channels, inbox), inbox, name).serve(driver)
        finally:
            for channel in channels.values():
                channel.close()


class Slot:
    """Runs the epochs of one slot."""

    def __init__(
        self, index: int, deployment: Deployment, routes: Routes, peers: Peers, inbox: Inbox, name: str
    ) -> None:
        self._index, self._deployment, self._routes = index, deployment, routes
        self._peers, self._inbox, self._name = peers, inbox, name

    def serve(self, driver: Channel) -> None:
        """Run epochs until the driver closes the connection."""
        while True:
            try:
                request = driver.receive()
            except (OSError, EOFError):
                return
            self._run(driver, request.run, pickle.loads(request.blocks[0]))
            collect_cycles()

    def _run(self, driver: Channel, run: int, requests: list[LevelRequest]) -> None:
        """Run one epoch. The last results are sent with the end of it."""
        self._inbox.begin(run)
        results: list[bytes] = []
        failed = False
        for level, request in enumerate(requests):
            if not failed and request:
                inbox: Any = self._inbox.take(run, level, self._routes.senders.get(level, ()))
                outgoing = run_level(self._deployment, level, self._index, inbox, request, f"{self._name}.{run}")
                for target, data in outgoing:
                    kind = data[0]
                    if kind in (BlockKind.REPORT, BlockKind.FAILURE):
                        failed = failed or kind == BlockKind.FAILURE
                        results.append(data)
                    else:
                        edge = blocks.header(data).edge
                        self._peers.send(run, self._deployment.plan.edge_levels[edge], target, data)
            if level in self._routes.targets:
                self._peers.complete(run, level, self._routes.targets[level])
        driver.send(Frame(DONE, run, blocks=results))


def serve_tasks(driver: Channel, program: DeployedProgram) -> None:
    """Run tasks between epochs until the connection ends."""
    with suppress(OSError, EOFError):
        while True:
            request = driver.receive()
            driver.send(Frame(DONE, request.run, blocks=list(run_packed_tasks(program, request.blocks[0]))))


def connect_peers(
    slot: int, peers: Collection[int], hosts: list[str], secret: bytes, all_gather: Callable[[str], list[str]]
) -> dict[int, Channel]:
    """Connect a slot with others: it connects to those with a higher index, and accepts those with a lower one.

    Slots of one host use Unix sockets. A slot listens on the network only if it accepts a slot of another host."""
    lower = [peer for peer in peers if peer < slot]
    listeners = {}
    if any(hosts[peer] == hosts[slot] for peer in lower):
        listeners["host"] = Listener.on_host()
    if any(hosts[peer] != hosts[slot] for peer in lower):
        listeners["network"] = Listener.on_network(hosts[slot])
    gathering = Gathering(listeners.values(), secret, lower)
    try:
        addresses = all_gather(json.dumps({name: listener.address for name, listener in listeners.items()}))
        channels: dict[int, Channel] = {}
        for peer in peers:
            if peer > slot:
                address = json.loads(addresses[peer])["host" if hosts[peer] == hosts[slot] else "network"]
                channels[peer] = greet(connect(address, secret), slot)
        return channels | gathering.wait(_PEER_SECONDS)
    finally:
        gathering.close()
