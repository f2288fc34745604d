"""A job that runs elsewhere does what the files in its directory ask for, once, and whatever they say goes on."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from millstream.checkpoint.storage import CheckpointStorage
from millstream.cli.main import main
from millstream.cluster import mailbox
from millstream.cluster.job_events import EpochDone, RescaleDone, StatusChanged
from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus
from millstream_chaos.cases.leaders import create_leadership
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import ROOT, Faults, Setup, World, compute_reference, run, run_lives

SETUP = Setup(PROGRAMS["ordered_timers"], epoch_records=5, options={"pipeline.max-parallelism": "16"})
WHERE = f"{ROOT}/job/requests"


@pytest.fixture(autouse=True)
def _always_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "_READ_EVERY", 0.0)


def put(world, name, asked):
    data = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
    world.disk.make_dirs(WHERE)
    world.disk.write_bytes(f"{WHERE}/{name}.json", data, False)


def asking(world, **asked):
    """A listener that puts requests after the second epoch."""
    left = dict(asked)

    def listen(observation, master):
        if isinstance(observation, EpochDone) and observation.epoch >= 2:
            while left:
                put(world, *left.popitem())

    return listen


def answers(world):
    left = world.disk.list(WHERE) if world.disk.exists(WHERE) else []
    return {name: json.loads(world.disk.read_bytes(f"{WHERE}/{name}")) for name in left}


def rescales(life):
    return [each.slots for each in life.seen if isinstance(each, RescaleDone)]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"rescale": 5}, {"slots": 5}),
        ({"rescale": 17}, "parallelism 17 with maximum parallelism 16 is out of range"),
        ({"rescale": True}, "a parallelism of True is not possible"),
        ({"rescale": {"nobody": 2}}, "no operator has the uid or name 'nobody'"),
        ({"rescale": {}}, "not a request"),
        ({"rescale": 3, "and": "more"}, "not a request"),
        (b"\x80\x04\x95 not json", "not a request"),
        (b"[" * 60_000, "not a request"),
        (b" " * 70_000 + b'{"rescale": 5}', "not a request: it has 70014 bytes"),
    ],
)
def test_a_request_is_carried_out_or_refused_with_a_reason(asked, answer):
    with World() as world:
        life = run(SETUP, world, listen=asking(world, mine=asked))
        assert life.status is JobStatus.FINISHED
        assert len(world.visible()) == 40
        assert life.master.job.restarts == 0
        (name, found), *more = answers(world).items()
    assert name == "mine.answer"
    assert not more
    if isinstance(answer, dict):
        assert found == answer
        assert rescales(life) == [5]
    else:
        assert answer in found["refused"]
        assert rescales(life) == []


def test_what_was_asked_before_a_driver_began_is_not_done_but_asked_again():
    with World() as world:
        put(world, "old", {"rescale": 5})
        life = run(SETUP, world)
        assert rescales(life) == []
        assert answers(world) == {"old.answer": {"again": True}}


def test_of_two_requests_at_once_the_later_is_done_and_both_are_answered():
    with World() as world:
        life = run(SETUP, world, listen=asking(world, a={"rescale": 3}, b={"rescale": 4}))
        assert rescales(life) == [4]
        found = answers(world)
        assert found["b.answer"] == {"slots": 4}
        assert "a later request replaced it" in found["a.answer"]["refused"]


def test_files_of_other_names_are_left_alone():
    with World() as world:
        listen = asking(world, **{"a b": {"rescale": 5}, "x" * 101: {"rescale": 5}})
        assert rescales(run(SETUP, world, listen=listen)) == []
        assert len(answers(world)) == 2


def test_a_request_that_nobody_took_before_the_job_ended_is_refused():
    with World() as world:

        def listen(observation, master):
            if isinstance(observation, StatusChanged) and observation.status is JobStatus.FINISHED:
                put(world, "late", {"rescale": 5})

        run(SETUP, world, listen=listen)
        assert answers(world) == {"late.answer": {"refused": "the job has ended: it is FINISHED"}}


def test_an_old_leader_leaves_requests_to_the_one_that_leads():
    """Another driver has begun a term, and is asked for something, before the first one knows."""
    setup = replace(SETUP, checkpoint_every=100_000)  # nothing else tells the first one that it leads no more
    with World() as world:
        asked = []

        def listen(observation, master):
            if isinstance(observation, EpochDone) and observation.epoch == 2:
                create_leadership(world, "second").wait(lambda: False)
                put(world, "mine", {"rescale": 5})
                asked.append(observation)

        first = run(setup, world, listen=listen, leadership=create_leadership(world, "first"))
        assert first.status is JobStatus.SUSPENDED
        assert first.epochs[-1] is asked[0]
        assert list(answers(world)) == ["mine.json"]
        assert run(setup, world, leadership=create_leadership(world, "third")).status is JobStatus.FINISHED
        assert answers(world) == {"mine.answer": {"again": True}}
        assert world.visible() == compute_reference(SETUP)


def test_a_fault_while_a_request_is_answered_harms_nothing():
    expected = compute_reference(SETUP)
    with World() as world:
        whole = run(SETUP, world, listen=asking(world, mine={"rescale": 5}))
        points = [n for n, each in enumerate(whole.operations) if "requests" in each.path + each.target]
    assert len(points) >= 3
    for number in points:
        for mode in ("after", "torn", "eio"):
            with World() as world:
                life = run(SETUP, world, Faults(storage=(number, mode)), listen=asking(world, mine={"rescale": 5}))
                assert life.crashed == (mode != "eio")
                assert life.master.job.restarts == 0
                if life.crashed and not life.finished:
                    run_lives(SETUP, world)
                assert world.visible() == expected, (number, mode)


class Told:
    """A clock and an asker's patience, without waiting."""

    def __init__(self, answered):
        self.at, self.answered = 0.0, answered

    def now(self):
        return self.at

    def sleep(self, seconds):
        self.at += seconds
        self.answered()


def test_an_answer_that_nobody_fetched_is_deleted_after_an_hour(tmp_path):
    storage = CheckpointStorage(str(tmp_path), "job")
    asked = mailbox.Mailbox(storage, rescale=None)
    asked.read(0.0)
    storage.write("requests/lost.answer", b"{}")
    asked.read(10.0)
    storage.write("requests/waited-for.answer", b"{}")
    asked.read(3_605.0)
    assert len(storage.files("requests")) == 2
    asked.read(3_611.0)
    assert storage.files("requests") == ["job/requests/waited-for.answer"]


def test_whoever_asks_asks_again_when_told_so_and_leaves_nothing_behind(tmp_path):
    storage = CheckpointStorage(str(tmp_path), "job")
    seen = []

    def answered():
        for request in (tmp_path / "job" / "requests").glob("*.json"):
            seen.append((request.name, json.loads(request.read_text())))
            request.with_suffix(".answer").write_text(json.dumps({"slots": 3} if len(seen) > 1 else {"again": True}))

    clock, ids = Told(answered), iter(["one", "two"])
    slots = mailbox.request_rescale(
        storage, {"x": 3}, ids=lambda: next(ids), seconds=5, now=clock.now, sleep=clock.sleep
    )
    assert slots == 3
    assert seen == [("one.json", {"rescale": {"x": 3}}), ("two.json", {"rescale": {"x": 3}})]
    assert not list((tmp_path / "job" / "requests").iterdir())


def test_a_job_that_does_not_answer_is_not_waited_for_for_ever(tmp_path):
    clock = Told(lambda: None)
    storage = CheckpointStorage(str(tmp_path), "job")
    with pytest.raises(mailbox.NoAnswer, match="has not answered within 5 s"):
        mailbox.request_rescale(storage, 3, ids=lambda: "one", seconds=5, now=clock.now, sleep=clock.sleep)
    assert not list((tmp_path / "job" / "requests").iterdir())


# ------------------------------------------------------------------------------------------------- the command line


def started(directory: Path, seen: list):
    configuration = Configuration()
    for key, value in {
        "execution.checkpointing.dir": str(directory),
        "execution.checkpointing.interval": "20 ms",
        "millstream.epoch.max-records": "200",
        "pipeline.max-parallelism": "8",
    }.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(0, 1 << 40), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.key_by(lambda n: n % 7, Types.LONG()).reduce(lambda a, b: a + b).uid("sums").disable_chaining()
    env.register_listener(seen.append)
    return env.execute_async("sums")


@pytest.mark.usefixtures("inline_engine")
def test_the_command_rescales_a_running_job(tmp_path, capsys):
    seen = []
    client = started(tmp_path, seen)
    try:
        while not list(tmp_path.glob("*/chk-*/_metadata")):
            time.sleep(0.01)
        assert main(["rescale", str(tmp_path), "3", "--job", str(client.get_job_id())]) == 0
        assert main(["rescale", str(tmp_path), "sums=4", "--job", "sums"]) == 0
        assert [each.slots for each in seen if isinstance(each, RescaleDone)] == [3, 4]
        assert main(["rescale", str(tmp_path / str(client.get_job_id())), "9"]) == 1
        assert "parallelism 9 with maximum parallelism 8 is out of range" in capsys.readouterr().err
    finally:
        client.cancel().result(30)


@pytest.mark.usefixtures("inline_engine")
def test_the_command_says_which_jobs_there_are_and_what_is_wrong(tmp_path, capsys):
    assert main(["rescale", str(tmp_path), "3"]) == 1
    assert "there is no job in" in capsys.readouterr().err
    for name in ("one", "two"):
        (tmp_path / name / "shared").mkdir(parents=True)
    assert main(["rescale", str(tmp_path), "3"]) == 1
    assert "one (no checkpoint), two (no checkpoint)" in capsys.readouterr().err
    assert main(["rescale", str(tmp_path), "3", "x=2"]) == 1
    assert "name one parallelism for all operators" in capsys.readouterr().err
    assert main(["rescale", str(tmp_path), "3", "--job", "one", "--timeout", "0.2"]) == 1
    assert "has not answered within 0.2 s" in capsys.readouterr().err
    for word in ("0", "x=", "=3", "three"):
        with pytest.raises(SystemExit):
            main(["rescale", str(tmp_path), word])
