"""A checkpoint expires because storage hangs; the abandoned thread returns at any later moment."""

import threading
from collections import Counter

import pytest

from millstream.cluster.job_events import CheckpointDone, EpochDone, StatusChanged
from millstream.common import Types, WatermarkStrategy
from millstream.common.serialization import Encoder
from millstream.connectors.files import FileSink, RollingPolicy
from millstream.connectors.files.buckets import BucketAssigner
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus
from millstream_chaos.simulation import ROOT, Setup, World, run
from millstream_chaos.storage.faulty_files import SimulatedCrash
from millstream_chaos.storage.memory_files import MemoryFileSystem

LATE = f"{ROOT}/job/chk-2/_metadata"
LAST = 28
WAIT = 20.0  # seconds after which a test counts as stuck


class Hanging(MemoryFileSystem):
    """Hangs in the first attempt to publish checkpoint 2: before anything of it is checked, before it exists, or after
    it exists and before the caller knows."""

    def __init__(self, where):
        super().__init__()
        self.where = where
        self.hangs, self.goes_on, self.is_back = threading.Event(), threading.Event(), threading.Event()
        self.published = None  # called with the path of metadata that exists by now
        for directory in (ROOT, "/output"):
            self.make_dirs(directory)

    def _hang(self):
        self.hangs.set()
        self.goes_on.wait(WAIT)

    def write_bytes(self, path, data, sync):
        super().write_bytes(path, data, sync)
        if "/chk-2/" in path and self.where == "before the check" and not self.hangs.is_set():
            self._hang()

    def remove(self, path):
        try:
            super().remove(path)
        finally:
            if "/chk-2/" in path and self.goes_on.is_set():  # the temporary file of an attempt that was given up
                self.is_back.set()

    def move_new(self, source, target):
        first = target == LATE and self.where != "before the check" and not self.hangs.is_set()
        if first and self.where == "before it exists":
            self._hang()
        try:
            super().move_new(source, target)
        finally:
            if first and self.where == "before it exists":
                self.is_back.set()
        if first and self.where == "after it exists":
            self._hang()
            self.is_back.set()
        if self.published is not None and not first:
            self.published(target)

    def come_back(self):
        """Release the late thread, and wait until it has finished."""
        self.goes_on.set()
        self.is_back.wait(WAIT)


def job(tmp_path, tolerable, part_size, retained=3, timeout=250):
    """Numbers to files exactly once, and to the output of the simulation, which refuses to show an epoch twice."""

    def program(env):
        sink = (
            FileSink.for_row_format(str(tmp_path / "out"), Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=part_size))
            .build()
        )
        source = NumberSequenceSource(1, LAST)
        numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "n").set_parallelism(1).uid("n")
        texts = numbers.map(str, Types.STRING()).uid("m")
        texts.sink_to(sink).uid("files")
        return texts

    options = {
        "execution.checkpointing.timeout": f"{timeout} ms",
        "execution.checkpointing.num-retained": str(retained),
        "execution.checkpointing.tolerable-failed-checkpoints": str(tolerable),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "20",
        "restart-strategy.fixed-delay.delay": "10 ms",
    }
    return Setup(program, parallelism=1, epoch_records=4, checkpoint_every=2, options=options)


class Moment:
    """Releases the late thread once, at the moment of its name; then the process may die."""

    def __init__(self, disk, name, dies):
        self.disk, self.name, self.dies = disk, name, dies
        self.came, self.restarted = False, False
        disk.published = self.published

    def published(self, path):
        if self.disk.hangs.is_set() and path.endswith("/_metadata"):
            if self.name == "after its number is void" and path == LATE:
                self.come()
            if self.name == "after the next checkpoint, before its commit" and path.endswith("/chk-3/_metadata"):
                self.come()

    def __call__(self, observation, master):
        if not self.disk.hangs.is_set() or self.came:
            return
        if isinstance(observation, StatusChanged) and observation.status is JobStatus.RESTARTING:
            self.restarted = True
        match self.name:
            case "with the next epoch" if isinstance(observation, EpochDone):
                self.come()
            case "before a recovery" if self.restarted:
                self.come()
            case "after a recovery" if isinstance(observation, StatusChanged) and (
                observation.status is JobStatus.RUNNING and self.restarted
            ):
                self.come()
            case "after a commit" | "after its number was deleted" if isinstance(observation, CheckpointDone):
                self.come()

    def come(self):
        if self.came:
            return
        self.came = True
        self.disk.come_back()
        if self.dies and threading.current_thread() is threading.main_thread():
            raise SimulatedCrash


def lines(tmp_path):
    return Counter(line for path in (tmp_path / "out").glob("part*") for line in path.read_text().split() if line)


MOMENTS = {
    0: ["before a recovery", "after its number is void", "after a recovery", "after a commit"],
    5: [
        "with the next epoch",
        "after its number is void",
        "after the next checkpoint, before its commit",
        "after a commit",
        "after its number was deleted",
    ],
}


CASES = [
    (tolerable, moment, where)
    for tolerable, moments in MOMENTS.items()
    for moment in moments
    for where in ("before the check", "before it exists", "after it exists")
    if (moment, where) != ("after its number is void", "after it exists")  # a checkpoint that exists is never void
]


@pytest.mark.parametrize(
    ("dies", "part_size"), [(False, 4), (True, 1 << 20)], ids=["lives on, a file an epoch", "dies, files over epochs"]
)
@pytest.mark.parametrize(("tolerable", "moment", "where"), CASES)
def test_a_late_checkpoint_has_no_effect(tmp_path, where, tolerable, moment, dies, part_size):
    retained = 1 if moment == "after its number was deleted" else 3
    setup, disk = job(tmp_path, tolerable, part_size, retained), Hanging(where)
    with World() as world:
        world.rewind(disk, World.BEGIN)
        listen = Moment(disk, moment, dies)
        life = run(setup, world, listen=listen, deadlines=True)
        disk.goes_on.set()
        assert disk.hangs.is_set()
        assert listen.came
        assert disk.is_back.is_set()
        while life.crashed:
            life = run(setup, world)
        assert life.status is JobStatus.FINISHED, life.failure
        assert lines(tmp_path) == Counter(map(str, range(1, LAST + 1)))
        assert world.visible() == sorted(repr(str(number)) for number in range(1, LAST + 1))


@pytest.mark.parametrize("where", ["before it exists", "after it exists"])
def test_a_number_is_used_once_and_a_late_checkpoint_replaces_nothing(tmp_path, where):
    setup, disk = job(tmp_path, 5, 4, timeout=1500), Hanging(where)
    kept, done = {}, []

    def listen(observation, master):
        if isinstance(observation, CheckpointDone):
            done.append(observation.id)
            kept[observation.id] = disk.files[f"{ROOT}/job/chk-{observation.id}/_metadata"]
            if disk.hangs.is_set() and not disk.is_back.is_set():
                disk.come_back()
                assert kept[observation.id] == disk.files[f"{ROOT}/job/chk-{observation.id}/_metadata"]

    with World() as world:
        world.rewind(disk, World.BEGIN)
        life = run(setup, world, listen=listen, deadlines=True)
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 0
        assert done[:2] == [1, 3]
        assert len(set(done)) == len(done)
