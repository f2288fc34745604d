"""A mark: which output of a transactional id is in the topics.

Promises: output counts as written only if the same attempt wrote it; output of another attempt at an epoch that was
written is an error. A mark has a bounded size.
Does not know: topics, files, producers.

A mark remembers for each job the last epoch that was written, and for the last transactions which epochs and which
files they wrote (a digest of the files' names, which contain the attempt). A job here is a job's id with its
incarnation. Marks of earlier releases have the last epoch only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millstream.connectors.kafka.staging import Staged
from millstream.errors import ExternalError

_JOBS = 16  # that a mark remembers
_TRANSACTIONS = 8  # of the job that wrote last; of the others it remembers one


class WrittenByAnotherAttempt(ExternalError):
    """The topics have the output of an epoch already, and this is not that output."""

    hint = (
        "the job went back behind output that readers have seen: start it from its newest checkpoint; or start a new "
        "job from the checkpoint it has, with execution.state-recovery.path, and the output since then appears twice"
    )

    def __init__(self, transactional_id: str, staged: Sequence[Staged], written: int) -> None:
        self.transactional_id, self.job = transactional_id, staged[0].job
        self.first, self.last = staged[0].epoch, staged[-1].epoch
        super().__init__(
            f"epochs {self.first} to {self.last} of job {self.job} were run again, but '{transactional_id}' has "
            f"written the job's output up to epoch {written} from other attempts, so this output is not written"
        )


class NotAMark(ValueError):
    """Bytes that are not a mark, or a mark of an unknown format."""

    def __init__(self, data: bytes, problem: Exception) -> None:
        super().__init__(f"{data[:80]!r}{'...' if len(data) > 80 else ''} ({problem})")


@dataclass(frozen=True, slots=True)
class Written:
    """One transaction: the first and last epoch, and a digest of the files it wrote."""

    first: int
    last: int
    digest: str


@dataclass(frozen=True, slots=True)
class JobMark:
    """How far the output of a job is written."""

    epoch: int
    transactions: tuple[Written, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of one transactional id. `owner` is the run of a driver that wrote last; empty if that is not known."""

    owner: str = ""
    jobs: Mapping[str, JobMark] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, data: bytes) -> Mark:
        """The inverse of `to_bytes`. Raises `NotAMark` if the bytes are none, or have a form that is not known here: to
        read them as an empty mark would write output again."""
        try:
            read = json.loads(data)
            if not isinstance(read.get("jobs"), dict):  # of an earlier release: a number for each job
                return cls("", {str(job): JobMark(_epoch(epoch)) for job, epoch in read.items()})
            _check_members(read, "jobs", "owner")
            return cls(str(read["owner"]), {str(job): _job_mark(each) for job, each in read["jobs"].items()})
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as problem:
            raise NotAMark(data, problem) from problem

    def to_bytes(self) -> bytes:
        """The mark as JSON."""
        jobs = {
            name: {"epoch": job.epoch, "written": [[w.first, w.last, w.digest] for w in job.transactions]}
            for name, job in self.jobs.items()
        }
        return json.dumps({"owner": self.owner, "jobs": jobs}, separators=(",", ":")).encode()

    def owned_by(self, owner: str) -> Mark:
        """Return the mark with another run of a driver as its owner."""
        return replace(self, owner=owner)

    def is_foreign(self, owner: str) -> bool:
        """Whether another run of a driver wrote last."""
        return self.owner not in ("", owner)

    def after(self, owner: str, written: Sequence[Staged]) -> Mark:
        """The mark after a transaction with the output of one job."""
        name, first, last = written[0].job, written[0].epoch, written[-1].epoch
        before = self.jobs.get(name, JobMark(-1)).transactions
        mine = JobMark(last, (*before, Written(first, last, digest_of(written)))[-_TRANSACTIONS:])
        others = {job: replace(each, transactions=each.transactions[-1:]) for job, each in self.jobs.items()}
        others.pop(name, None)
        return Mark(owner, dict([*others.items(), (name, mine)][-_JOBS:]))

    def pending(
        self, transactional_id: str, staged: Sequence[Staged], exists: Callable[[Staged], bool]
    ) -> list[Staged]:
        """What is not written yet of the staged output of one job, which is in the order of epochs.

        Output that is older than the transactions the mark remembers counts as written if its file is gone; so does
        output of an earlier release, whose marks have the last epoch only."""
        known = self.jobs.get(staged[0].job) if staged else None
        if known is None:
            return list(staged)
        same: set[str] = set()
        for transaction in known.transactions:
            mine = [each for each in staged if transaction.first <= each.epoch <= transaction.last]
            if digest_of(mine) == transaction.digest:
                same.update(each.name for each in mine)
        oldest = known.transactions[0].first if known.transactions else known.epoch + 1
        other = [
            each
            for each in staged
            if each.epoch <= known.epoch and each.name not in same and each.transaction
            if each.epoch >= oldest or exists(each)
        ]
        if other:
            raise WrittenByAnotherAttempt(transactional_id, other, known.epoch)
        return [each for each in staged if each.epoch > known.epoch]


def _job_mark(entry: Mapping[str, Sequence[Sequence[object]]]) -> JobMark:
    _check_members(entry, "epoch", "written")
    return JobMark(_epoch(entry["epoch"]), tuple(map(_written, entry["written"])))


def _check_members(entry: Mapping[str, object], *names: str) -> None:
    if set(entry) != set(names):
        msg = f"it has {sorted(entry)} instead of {sorted(names)}"
        raise TypeError(msg)


def _epoch(value: object) -> int:
    if type(value) is not int:
        msg = f"{value!r:.100} is not an epoch"
        raise TypeError(msg)
    return value


def _written(entry: Sequence[object]) -> Written:
    first, last, digest = entry
    if type(first) is not int or type(last) is not int or type(digest) is not str:
        msg = f"{entry!r} is not a transaction"
        raise TypeError(msg)
    return Written(first, last, digest)


def digest_of(staged: Iterable[Staged]) -> str:
    """A digest of attempts: of the names of their files."""
    names = "\n".join(each.name for each in staged)
    return hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
