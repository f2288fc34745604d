"""Feedback is read from memory only if this process wrote the accepted version."""

from types import SimpleNamespace

from millstream.runtime import feedback
from millstream.runtime.batch import Batch
from millstream.state.backend import OperatorState
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.types.factory import Types


def state():
    return OperatorState(range_of(0, 1, 128), 0, 1, KeyGrouper(128))


def chunk(*values):
    return feedback.pack_chunk(Batch(Types.LONG(), rows=list(values)))


def test_a_head_reads_the_version_that_was_accepted():
    tail = state()
    feedback.feedback_table(tail).put_many(None, [feedback.chunk_key(0)], [chunk(1, 2)])
    written = tail.encode_delta()[0]
    handle = Handle("job/tail-0-7-good", len(written), "", 7)
    context = SimpleNamespace(
        job="job", subtask=0, parallelism=1, state=state(), files=SimpleNamespace(read=lambda _: written)
    )
    reader = feedback.FeedbackReader(context, "tail")

    def read():
        return [feedback.unpack_chunk(data, Types.LONG()).rows() for data in reader.read(Lineage((handle,)))]

    feedback.keep_recent("job", "tail", 0, "tail-0-7-bad", [chunk(9)])
    assert read() == [[1, 2]]
    feedback.keep_recent("job", "tail", 0, "tail-0-7-good", [chunk(3)])
    assert read() == [[3]]
    feedback.forget_recent("job", "tail", 0)
    assert read() == [[1, 2]]
