"""What a mark records about the output in the topics, and which output it recognises as the same."""

from __future__ import annotations

import pytest

from millstream.connectors.kafka.mark import JobMark, Mark, NotAMark, WrittenByAnotherAttempt
from millstream.connectors.kafka.staging import Staged


def files(*epochs: int, job: str = "job", attempt: str = "a", transaction: str = "id") -> list[Staged]:
    return [
        Staged(f"{job}-sink@{epoch}@0-{attempt}", job, "sink", epoch, 0, 1, 1, "/staged", transaction, 1)
        for epoch in epochs
    ]


def pending(mark: Mark, staged: list[Staged], there: bool = True) -> list[int]:
    return [each.epoch for each in mark.pending("id", staged, lambda _: there)]


def test_a_mark_survives_a_round_trip():
    mark = Mark().after("run 1", files(1, 2)).after("run 2", files(3)).after("run 2", files(1, job="other"))
    assert Mark.from_bytes(mark.to_bytes()) == mark
    assert mark.owner == "run 2"
    assert mark.is_foreign("run 1")
    assert not mark.is_foreign("run 2")
    assert not Mark().is_foreign("run 1")
    assert Mark.from_bytes(b'{"job": 7}') == Mark("", {"job": JobMark(7)})


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"job": "7"}', b'{"job": 7.5}', b'{"job": null}'),
        b'{"owner": "", "jobs": {"j": {"epoch": 1, "written": [[1, "2", 3]]}}}',
        b'{"owner": "", "jobs": {"j": {"epoch": 2, "written": [[1, 2, "digest", "one more"]]}}}',
        b'{"owner": "", "jobs": {"j": {"epoch": 2, "written": [], "one more": 1}}}',
        b'{"owner": "", "jobs": {}, "one more": 1}',
        b'{"form": 2, "marks": {"j": 1}}',
    ],
)
def test_bytes_that_are_not_a_mark_are_refused(data):
    with pytest.raises(NotAMark):  # as an empty mark they would have output written again
        Mark.from_bytes(data)


def test_a_mark_of_no_jobs_is_empty():
    assert Mark.from_bytes(b"{}") == Mark.from_bytes(Mark().to_bytes()) == Mark()


def test_the_same_attempts_are_written_once_and_later_epochs_follow():
    mark = Mark().after("run", files(1, 2)).after("run", files(4))
    assert pending(Mark(), files(1, 2)) == [1, 2]
    assert pending(mark, files(1, 2)) == []
    assert pending(mark, files(1, 2, 4, 5)) == [5]
    assert pending(mark, files(1, job="anew")) == [1]


@pytest.mark.parametrize("again", [files(1, 2, attempt="b"), files(2), files(3), files(4, attempt="b")])
def test_other_attempts_at_epochs_that_were_written_are_refused(again):
    mark = Mark().after("run", files(1, 2)).after("run", files(4))
    with pytest.raises(WrittenByAnotherAttempt):
        pending(mark, again)


def test_older_output_is_written_if_its_file_is_missing():
    mark = Mark()
    for epoch in range(1, 30):
        mark = mark.after("run", files(epoch))
    assert pending(mark, files(1), there=False) == []
    with pytest.raises(WrittenByAnotherAttempt):
        pending(mark, files(1), there=True)
    assert pending(mark, files(1, transaction=""), there=True) == []  # of the previous release: it has only an epoch


def test_a_mark_does_not_grow():
    mark, sizes = Mark(), set()
    for number in range(200):
        for epoch in range(100, 120):
            mark = mark.after("run", files(epoch, job=f"job-{number:05}-{'x' * 40}"))
        sizes.add(len(mark.to_bytes()))
    assert max(sizes) < 4000
    assert len(mark.jobs) == 16
