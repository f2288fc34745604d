"""Staged output reaches its topics exactly once, whichever driver commits it, however often, and wherever a commit is
interrupted."""

from __future__ import annotations

import dataclasses
import logging
import os
import threading
import time

import confluent_kafka
import numpy as np
import pyarrow as pa
import pytest
from kafka_running import PowerCut, cut, stage, wait_for, writing

from millstream.cli.main import main
from millstream.cluster.leadership import LeadershipLost
from millstream.connector.sink import ThisProcess
from millstream.connector.staged import NotStaged
from millstream.connectors.kafka import commit_task
from millstream.connectors.kafka.client import KafkaFailure
from millstream.connectors.kafka.commit import KafkaCommitter
from millstream.connectors.kafka.mark import WrittenByAnotherAttempt
from millstream.connectors.kafka.marks import TOPIC, Marks, MarkUnreadable
from millstream.connectors.kafka.messages import Messages, StagedOutputDamaged
from millstream.connectors.kafka.staging import StagedOutputLost, Staging
from millstream.connectors.kafka.transactions import TakenOver, Transactions


def left(staging: str) -> list[str]:
    return [name for name in os.listdir(staging) if "@" in name]


def mark_of(broker, topic, subtask=0):
    return Marks(f"{topic}-sink-{subtask}", {"bootstrap.servers": broker.bootstrap_servers}).peek()


def test_output_is_visible_after_its_commit_and_a_second_commit_adds_nothing(broker, topic, staging, caplog):
    sink = writing(broker, topic, staging)
    made = stage(sink, 1, ["a", "b"]) + stage(sink, 1, ["c"], subtask=1) + stage(sink, 2, ["d"])
    assert broker.values(topic, "read_uncommitted") == []
    with caplog.at_level(logging.WARNING, "millstream.kafka"):
        sink.create_committer().commit(1, made)
        assert caplog.messages == []
        sink.create_committer().commit(1, made)
    assert sorted(broker.values(topic)) == ["a", "b", "c", "d"]
    assert left(staging) == []
    told = "checkpoint 1: '{}-sink-{}' had written {} of {} staged files before, by the same attempts"
    assert caplog.messages == [told.format(topic, 0, 2, 2), told.format(topic, 1, 1, 1)]


CALLS = ["opening transactions", "beginning a transaction", "marking the transaction", "committing"]


@pytest.mark.parametrize("way", ["before", "after"])
@pytest.mark.parametrize("place", [*range(len(CALLS)), "staging"])
def test_a_crash_at_any_call_to_the_broker_duplicates_nothing(broker, topic, staging, monkeypatch, place, way):
    """Before or after the call; after the commit of the transaction, only its mark shows that it was committed."""
    sink = writing(broker, topic, staging)
    made = stage(sink, 1, ["a", "b"]) + stage(sink, 2, ["c"])
    seen = run_interrupted(sink, made, place, way, monkeypatch)
    assert seen == (CALLS if place == "staging" else CALLS[: place + 1])
    sink.create_committer().commit(1, made)
    assert broker.values(topic) == ["a", "b", "c"]


def run_interrupted(sink, made, place, way, monkeypatch) -> list[str]:
    """Run a commit that dies at a call to the broker; returns the calls."""
    seen = []
    with monkeypatch.context() as patch:
        call = Transactions._call

        def until_cut(self, asked, doing):
            seen.append(doing)
            if len(seen) - 1 != place:
                return call(self, asked, doing)
            if way == "after":
                call(self, asked, doing)
            return cut()

        patch.setattr(Transactions, "_call", until_cut)
        patch.setattr(Transactions, "_abort", lambda self: None)
        if place == "staging":
            patch.setattr(Staging, "remove", cut)
        with pytest.raises(PowerCut):
            sink.create_committer().commit(1, made)
    return seen


TAKING_OVER = [CALLS[0], *CALLS[1:], *CALLS[1:]]


@pytest.mark.parametrize("way", ["before", "after"])
@pytest.mark.parametrize("place", range(len(TAKING_OVER)))
def test_a_crash_during_a_takeover_of_an_id_duplicates_nothing(broker, topic, staging, monkeypatch, place, way):
    """The id is of a run that has died: a first transaction has the name of the new one, a second its output."""
    sink = writing(broker, topic, staging)
    sink.create_committer().commit(1, stage(sink, 1, ["a"]))
    made = stage(sink, 2, ["b"])
    seen = run_interrupted(sink, made, place, way, monkeypatch)
    assert seen == TAKING_OVER[: place + 1]
    sink.create_committer().commit(2, made)
    assert broker.values(topic) == ["a", "b"]


def test_output_that_is_staged_again_by_other_attempts_is_refused(broker, topic, staging):
    """The newest checkpoint was damaged: epochs 2 and 3 are run again, and may have given other results."""
    sink = writing(broker, topic, staging)
    committer = sink.create_committer()
    committer.commit(1, stage(sink, 1, ["a"]) + stage(sink, 2, ["b"]) + stage(sink, 3, ["c"]))
    again = stage(sink, 2, ["b"], attempt="again") + stage(sink, 3, ["x"], attempt="again") + stage(sink, 4, ["d"])
    for each in (committer, sink.create_committer()):
        with pytest.raises(WrittenByAnotherAttempt, match="epochs 2 to 3 of job job were run again"):
            each.commit(2, again)
    assert broker.values(topic) == ["a", "b", "c"]
    assert len(left(staging)) == 3
    sink.create_committer().commit(2, stage(sink, 4, ["d"]))
    assert broker.values(topic) == ["a", "b", "c", "d"]


def test_a_job_that_starts_from_the_beginning_is_distinguished_from_its_predecessor(broker, topic, staging):
    """Its epochs begin at 1 again, with the same prefix and another incarnation."""
    sink = writing(broker, topic, staging)
    sink.create_committer().commit(1, stage(sink, 1, ["a"], job="id-one") + stage(sink, 2, ["b"], job="id-one"))
    sink.create_committer().commit(1, stage(sink, 1, ["c"], job="id-two"))
    assert broker.values(topic) == ["a", "b", "c"]


def test_restoring_a_checkpoint_of_an_earlier_run_does_not_commit_it_again(broker, topic, staging):
    sink = writing(broker, topic, staging)
    first = stage(sink, 1, ["a"], job="first")
    sink.create_committer().commit(1, first)
    sink.create_committer().commit(1, stage(sink, 2, ["b"], job="second"))
    sink.create_committer().commit(1, first)
    assert broker.values(topic) == ["a", "b"]


def test_an_old_checkpoint_is_recognised_after_the_mark_dropped_its_transaction(broker, topic, staging):
    sink = writing(broker, topic, staging)
    committer, first = sink.create_committer(), stage(sink, 1, ["1"])
    committer.commit(1, first)
    for epoch in range(2, 12):
        committer.commit(epoch, stage(sink, epoch, [str(epoch)]))
    size = len(mark_of(broker, topic).to_bytes())
    committer.commit(1, first)
    for epoch in range(12, 20):
        committer.commit(epoch, stage(sink, epoch, [str(epoch)]))
    assert broker.values(topic) == [str(epoch) for epoch in range(1, 20)]
    assert len(mark_of(broker, topic).to_bytes()) <= size + 20
    with pytest.raises(WrittenByAnotherAttempt):
        committer.commit(1, stage(sink, 1, ["other"], attempt="other"))


def test_output_is_refused_while_the_mark_cannot_be_read(broker, topic, staging):
    sink = writing(broker, topic, staging)
    name, servers = f"{topic}-sink-0", {"bootstrap.servers": broker.bootstrap_servers}
    producer = confluent_kafka.Producer(servers)

    def mark(value):
        producer.produce(TOPIC, value, name.encode(), Marks(name, servers).partition)
        assert producer.flush(30) == 0

    made = stage(sink, 1, ["a"])
    mark(b'{"owner": "", "jobs": {"job": {"epoch": 1, "written": [[1, 1, "digest", "of a later release"]]}}}')
    with pytest.raises(MarkUnreadable, match=f"the mark of '{name}' in the topic '{TOPIC}' cannot be read"):
        sink.create_committer().commit(1, made)
    assert broker.values(topic) == []
    assert len(left(staging)) == 1
    mark(None)
    sink.create_committer().commit(1, made)
    assert broker.values(topic) == ["a"]


def test_output_of_the_previous_release_is_committed_by_the_epoch_in_its_mark(broker, topic, staging):
    """That release used one transactional id for all subtasks, and wrote a mark for the last epoch only."""
    sink = writing(broker, topic, staging)

    def old(*made):
        new = ("transaction", "parallelism")
        return [{k: v for k, v in each.items() if k not in new} for staged in made for each in staged]

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{topic}-sink"}
    )
    producer.init_transactions(30)
    marks = Marks(f"{topic}-sink", {"bootstrap.servers": broker.bootstrap_servers})
    producer.begin_transaction()
    producer.produce(topic, b"a")
    producer.produce(TOPIC, b'{"job": 1}', f"{topic}-sink".encode(), marks.partition)
    producer.commit_transaction(30)
    crashed = old(stage(sink, 1, ["a"]))  # committed, and not yet removed
    sink.create_committer().commit(1, crashed)
    waiting = old(stage(sink, 2, ["b"]), stage(sink, 2, ["c"], subtask=1), stage(sink, 3, ["d"]))
    sink.create_committer().commit(2, waiting)
    sink.create_committer().commit(2, waiting)
    sink.create_committer().commit(3, stage(sink, 4, ["e"]))
    assert broker.values(topic) == ["a", "b", "c", "d", "e"]
    assert left(staging) == []


def test_output_from_before_a_rescale_comes_first(broker, topic, staging):
    """A key has moved to another subtask: its messages keep their order. Ids of subtasks that are gone still work."""
    sink = writing(broker, topic, staging)
    wide = [each for sub in (0, 1, 2) for each in stage(sink, 1, [f"old {sub}"], sub, parallelism=3)]
    narrow = stage(sink, 2, ["new 0"], parallelism=1)
    back = stage(sink, 3, ["last 1"], 1, parallelism=3)
    sink.create_committer().commit(1, back + narrow + wide)
    found = broker.values(topic)
    assert sorted(found[:3]) == ["old 0", "old 1", "old 2"]
    assert found[3:] == ["new 0", "last 1"]
    assert left(staging) == []


def test_large_commits_are_divided_between_epochs(broker, topic, staging, monkeypatch):
    sink = writing(broker, topic, staging)
    made = [each for epoch in range(5) for subtask in (0, 1) for each in stage(sink, epoch, ["x"] * 3, subtask)]
    counted = []
    write = Transactions.write
    monkeypatch.setattr(Transactions, "write", lambda self, *args: counted.append(write(self, *args)) or counted[-1])
    KafkaCommitter(sink.prefix, staging, sink._settings(), max_messages=5).commit(1, made)
    assert counted == [6, 6, 3] * 2
    KafkaCommitter(sink.prefix, staging, sink._settings(), max_messages=5).commit(1, made)
    assert len(broker.values(topic)) == 30


# --------------------------------------------------------------------------------------------- several at work


def test_a_run_that_was_replaced_commits_nothing_more(broker, topic, staging):
    sink = writing(broker, topic, staging)
    zombie, heir = sink.create_committer(), sink.create_committer()
    zombie.commit(1, stage(sink, 1, ["a"]))
    heir.commit(1, stage(sink, 2, ["b"], job="heir"))
    late = stage(sink, 2, ["zombie"])
    for _ in range(2):  # nor when it tries again, which would fence the new leader
        with pytest.raises(TakenOver, match="was taken over"):
            zombie.commit(2, late)
    heir.commit(2, stage(sink, 3, ["c"], job="heir"))
    assert broker.values(topic) == ["a", "b", "c"]


def test_a_run_that_was_replaced_while_it_slept_commits_nothing_more(broker, topic, staging, monkeypatch):
    """It wakes up when its transaction would have expired anyway: only the mark shows what happened."""
    sink = dataclasses.replace(writing(broker, topic, staging), properties={"transaction.timeout.ms": "1000"})
    zombie, heir = sink.create_committer(), sink.create_committer()
    zombie.commit(1, stage(sink, 1, ["a"]))
    late, read = stage(sink, 2, ["zombie"]), Staging.read

    def asleep(staging, file):
        yield from read(staging, file)
        heir.commit(1, stage(sink, 2, ["b"], job="heir"))
        time.sleep(1.5)

    with monkeypatch.context() as patch:
        patch.setattr(Staging, "read", lambda staging, file: (read if file.job == "heir" else asleep)(staging, file))
        with pytest.raises(TakenOver, match="was taken over"):
            zombie.commit(2, late)
    heir.commit(2, stage(sink, 3, ["c"], job="heir"))
    assert broker.values(topic) == ["a", "b", "c"]


class Leading(ThisProcess):
    """The workers of a driver that holds the lease of its job until it loses it."""

    lost = False

    def leads(self) -> bool:
        if self.lost:
            raise LeadershipLost(1, 2, "another")
        return True


def test_a_leader_that_an_old_one_has_fenced_continues(broker, topic, staging):
    """The old one made its first checkpoint, saw that it leads, and slept before it opened its transactional id."""
    sink = writing(broker, topic, staging)
    old, new = sink.create_committer(), sink.create_committer()
    old.workers, new.workers = Leading(), Leading()
    first = stage(sink, 1, ["a"])
    new.commit(1, first)
    new.commit(2, stage(sink, 2, ["b"]))
    old.commit(1, first)  # it wakes up: no output is repeated
    new.commit(3, stage(sink, 3, ["c"]))
    old.workers.lost = True
    with pytest.raises(LeadershipLost):
        old.commit(2, stage(sink, 4, ["zombie"]))
    new.commit(4, stage(sink, 4, ["d"]))
    assert broker.values(topic) == ["a", "b", "c", "d"]


def test_two_concurrent_attempts_write_once(broker, topic, staging, monkeypatch):
    """Spark runs a task a second time while the first attempt is slow; the first is fenced, and its result may be the
    one that counts."""
    sink = writing(broker, topic, staging)
    made = stage(sink, 1, ["a"]) + stage(sink, 2, ["b"])
    committer = sink.create_committer()
    second: list[dict] = []
    read = Staging.read

    def overtaken(staging, file):
        yield from read(staging, file)
        if not second:  # in another worker, so without this one's producer
            second.append({})
            with monkeypatch.context() as patch:
                patch.setattr(commit_task, "_opened", {})
                second[0] = tasks[0].run()

    class Twice(ThisProcess):
        def run_tasks(self, asked):
            tasks.extend(asked)
            results.append([task.run() for task in asked])
            return results[-1]

    tasks, results = [], []
    committer.workers = Twice()
    monkeypatch.setattr(Staging, "read", overtaken)
    committer.commit(1, made)
    assert second[0]["outcome"] == "done"
    assert [result["outcome"] for each in results for result in each] in (["retry", "done"], ["lost", "done"])
    assert broker.values(topic) == ["a", "b"]
    committer.commit(2, stage(sink, 3, ["c"]))
    assert broker.values(topic) == ["a", "b", "c"]


def test_threads_that_commit_the_same_output_write_it_once(broker, topic, staging):
    sink = writing(broker, topic, staging)
    made = [each for epoch in range(1, 4) for each in stage(sink, epoch, [f"{epoch} {n}" for n in range(50)])]
    committers = [sink.create_committer() for _ in range(3)]
    for each in committers:
        each.workers = Leading()
    at_once = [threading.Thread(target=each.commit, args=(1, made)) for each in committers]
    for each in at_once:
        each.start()
    for each in at_once:
        each.join(60)
    assert broker.values(topic) == [f"{epoch} {n}" for epoch in range(1, 4) for n in range(50)]


def test_a_transaction_that_expires_is_repeated(broker, topic, staging, monkeypatch):
    sink = dataclasses.replace(writing(broker, topic, staging), properties={"transaction.timeout.ms": "1000"})
    committer, read, slept = sink.create_committer(), Staging.read, []

    def slowly(staging, file):
        yield from read(staging, file)
        if not slept:
            slept.append(True)
            assert wait_for(lambda: broker_has_aborted(broker, f"{topic}-sink-0"))

    committer.commit(1, stage(sink, 1, ["a"]))
    monkeypatch.setattr(Staging, "read", slowly)
    committer.commit(2, stage(sink, 2, ["b"]))
    assert slept
    assert broker.values(topic) == ["a", "b"]


def test_the_reason_why_a_broker_refuses_messages_is_reported(broker, topic, staging):
    """A time far in the future, which the broker refuses."""
    transactions = Transactions(f"{topic}-sink-0", writing(broker, topic, staging)._settings(), "run", claims=True)
    late = Messages(topic, pa.array([b"a"]), timestamps=np.array([1 << 50]))
    with pytest.raises(KafkaFailure, match=r"INVALID_TIMESTAMP.*timestamp"):
        transactions.write([late], transactions.mark)
    transactions.close()


def test_a_transaction_that_somebody_aborts_is_repeated(broker, topic, staging, monkeypatch):
    sink = writing(broker, topic, staging)
    committer, read, aborted = sink.create_committer(), Staging.read, []

    def interrupted_once(staging, file):
        yield from read(staging, file)
        if not aborted:
            aborted.append(main(["txn", "abort", "--bootstrap-servers", broker.bootstrap_servers, f"{topic}-sink-0"]))

    monkeypatch.setattr(Staging, "read", interrupted_once)
    committer.commit(1, stage(sink, 1, ["a"]))
    assert aborted == [0]
    assert broker.values(topic) == ["a"]


def broker_has_aborted(broker, transactional_id) -> bool:
    from millstream.connectors.kafka.open_transactions import list_transactions

    found = list_transactions(broker.bootstrap_servers, {}, transactional_id, everything=True)
    return [each.state for each in found] == ["CompleteAbort"]


def test_an_open_transaction_of_another_sink_does_not_hide_a_mark(broker, topic, staging):
    """Its mark comes first in the same partition: what is committed behind it is waited for, not overlooked."""
    sink = writing(broker, topic, staging)
    committer = sink.create_committer()
    committer.commit(1, stage(sink, 1, ["a"]))
    place = Marks(f"{topic}-sink-0", {"bootstrap.servers": broker.bootstrap_servers}).partition
    other = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    other.init_transactions(30)
    other.begin_transaction()
    other.produce(TOPIC, b"{}", b"other", place)
    other.flush(30)
    made = stage(sink, 2, ["b"])
    committer.commit(2, made)
    threading.Timer(1.0, other.abort_transaction, [30]).start()
    sink.create_committer().commit(2, made)
    assert broker.values(topic) == ["a", "b"]


# ----------------------------------------------------------------------------------------------------- files


def test_staged_output_that_is_lost_or_damaged_is_an_error(broker, topic, staging):
    sink = writing(broker, topic, staging)
    lost, damaged = stage(sink, 1, ["a"]), stage(sink, 2, ["b"])
    os.remove(os.path.join(staging, lost[0]["name"]))
    with pytest.raises(StagedOutputLost, match="is not there, and was not committed"):
        sink.create_committer().commit(1, lost)
    path = os.path.join(staging, damaged[0]["name"])
    with open(path, "r+b") as file:
        file.seek(40)
        file.write(b"\xff\xff\xff")
    with pytest.raises(StagedOutputDamaged):
        sink.create_committer().commit(1, damaged)
    for change in ({"name": "../../etc/passwd"}, {"name": "a@1@b/../c"}, {"directory": "/tmp/../etc"}):
        with pytest.raises(NotStaged):
            sink.create_committer().commit(1, [{**damaged[0], **change}])
    assert broker.values(topic) == []


def test_staged_output_is_found_after_its_directory_was_moved(broker, topic, staging):
    sink = writing(broker, topic, staging)
    made = stage(sink, 1, ["a"])
    os.rename(staging, f"{staging}-moved")
    moved = writing(broker, topic, f"{staging}-moved")
    with pytest.raises(StagedOutputLost):
        sink.create_committer().commit(1, made)
    moved.create_committer().commit(1, made)
    assert broker.values(topic) == ["a"]


def test_a_failed_attempt_leaves_no_files(broker, topic, staging):
    sink = writing(broker, topic, staging)
    made = stage(sink, 1, ["a"])
    sink.create_committer().abort(made)
    dead = stage(sink, 2, ["dead"], subtask=1)  # by a worker that was killed before it could tell
    sink.create_committer().commit(1, stage(sink, 2, ["b"]))
    assert dead
    assert left(staging) == []
    assert broker.values(topic) == ["b"]


def test_output_is_staged_on_an_object_store(broker, topic):
    sink = writing(broker, topic, "memory://bucket/staging")
    made = stage(sink, 1, ["a", "b"]) + stage(sink, 2, ["c"])
    assert made[0]["directory"] == "memory://bucket/staging"
    stage(sink, 1, ["dead"], attempt="dead")
    sink.create_committer().commit(1, made)
    sink.create_committer().commit(1, made)
    assert broker.values(topic) == ["a", "b", "c"]
    assert Staging("memory://bucket/staging").exists(commit_task.Staged.from_json(made[0])) is False


def test_producers_are_closed_with_their_job_and_when_they_are_unused(broker, topic, staging, monkeypatch):
    monkeypatch.setattr(commit_task, "_opened", {})
    sink = writing(broker, topic, staging)
    committer = sink.create_committer()
    committer.commit(1, stage(sink, 1, ["a"]) + stage(sink, 1, ["b"], subtask=1))
    assert len(commit_task._opened) == 2
    committer.close()
    assert commit_task._opened == {}
    forgotten = sink.create_committer()
    forgotten.commit(2, stage(sink, 2, ["c"]))
    monkeypatch.setattr(commit_task, "_IDLE_SECONDS", -1.0)
    sink.create_committer().commit(2, stage(sink, 2, ["d"], subtask=1))
    assert [transaction for _, transaction, _ in commit_task._opened] == [f"{topic}-sink-1"]
