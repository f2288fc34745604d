"""A mark: the record of which output of a transactional id is in the topics.

Promises: output counts as written only if the same attempt wrote it; output of another attempt at an epoch that was
written is an error. A mark has a bounded size.
Does not know: topics, files, producers.

A mark contains for each job the last epoch that was written, and for the last transactions which epochs and which
files they wrote (a digest of the files' names, which contain the attempt). A job here is a job's id with its
incarnation. Marks of earlier releases have the last epoch only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millstream.connectors.kafka.staging import Staged
from millstream.errors import ExternalError

_JOBS = 16  # in a mark
_TRANSACTIONS = 8  # of the job that wrote last; one of each other job


class WrittenByAnotherAttempt(ExternalError):
    """The topics already have the output of an epoch from another attempt."""

    hint = (
        "the job was restored to a checkpoint before visible output: start it from its newest checkpoint; or start "
        "a new job from the checkpoint it has, with execution.state-recovery.path: the output since then appears twice"
    )

    def __init__(self, transactional_id: str, staged: Sequence[Staged], last_written: int) -> None:
        self.transactional_id, self.job = transactional_id, staged[0].job
        self.first, self.last = staged[0].epoch, staged[-1].epoch
        super().__init__(
            f"epochs {self.first} to {self.last} of job {self.job} were run again, but '{transactional_id}' has "
            f"written the job's output up to epoch {last_written} from other attempts, so this output is not written"
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
    """The mark of one transactional id. `owner` is the run of the driver that wrote last; empty if it is unknown."""

    owner: str = ""
    jobs: Mapping[str, JobMark] = field(default_factory=dict)

    @classmethod
    def from_bytes(cls, data: bytes) -> Mark:
        """Return the inverse of `to_bytes`. Raises `NotAMark` if the bytes are not a mark, or one of an unknown format:
        reading them as an empty mark would write output again."""
        try:
            data_read = json.loads(data)
            if not isinstance(data_read.get("jobs"), dict):  # an earlier release wrote a number for each job
                return cls("", {str(job): JobMark(_epoch(epoch)) for job, epoch in data_read.items()})
            _check_members(data_read, "jobs", "owner")
            return cls(
                str(data_read["owner"]), {str(job): _job_mark(entry) for job, entry in data_read["jobs"].items()}
            )
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError) as problem:
            raise NotAMark(data, problem) from problem

    def to_bytes(self) -> bytes:
        """Return the mark as JSON."""
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
        """Return the mark after a transaction with the output of one job."""
        name, first, last = written[0].job, written[0].epoch, written[-1].epoch
        before = self.jobs.get(name, JobMark(-1)).transactions
        job_mark = JobMark(last, (*before, Written(first, last, digest_of(written)))[-_TRANSACTIONS:])
        other_jobs = {
            job: replace(other_mark, transactions=other_mark.transactions[-1:]) for job, other_mark in self.jobs.items()
        }
        other_jobs.pop(name, None)
        return Mark(owner, dict([*other_jobs.items(), (name, job_mark)][-_JOBS:]))

    def pending(
        self, transactional_id: str, staged: Sequence[Staged], exists: Callable[[Staged], bool]
    ) -> list[Staged]:
        """Return the staged output of one job, in the order of epochs, that is not written yet.

        Output that is older than the transactions in the mark counts as written if its file is missing; so does output
        of an earlier release, whose marks have the last epoch only."""
        job_mark = self.jobs.get(staged[0].job) if staged else None
        if job_mark is None:
            return list(staged)
        written_names: set[str] = set()
        for transaction in job_mark.transactions:
            files_of_transaction = [
                staged_file for staged_file in staged if transaction.first <= staged_file.epoch <= transaction.last
            ]
            if digest_of(files_of_transaction) == transaction.digest:
                written_names.update(staged_file.name for staged_file in files_of_transaction)
        oldest = job_mark.transactions[0].first if job_mark.transactions else job_mark.epoch + 1
        of_other_attempts = [
            staged_file
            for staged_file in staged
            if staged_file.epoch <= job_mark.epoch and staged_file.name not in written_names and staged_file.transaction
            if staged_file.epoch >= oldest or exists(staged_file)
        ]
        if of_other_attempts:
            raise WrittenByAnotherAttempt(transactional_id, of_other_attempts, job_mark.epoch)
        return [staged_file for staged_file in staged if staged_file.epoch > job_mark.epoch]


def _job_mark(entry: Mapping[str, Sequence[Sequence[object]]]) -> JobMark:
    _check_members(entry, "epoch", "written")
    return JobMark(_epoch(entry["epoch"]), tuple(map(_parse_written, entry["written"])))


def _check_members(entry: Mapping[str, object], *names: str) -> None:
    if set(entry) != set(names):
        msg = f"it has {sorted(entry)} instead of {sorted(names)}"
        raise TypeError(msg)


def _epoch(value: object) -> int:
    if type(value) is not int:
        msg = f"{value!r:.100} is not an epoch"
        raise TypeError(msg)
    return value


def _parse_written(entry: Sequence[object]) -> Written:
    first, last, digest = entry
    if type(first) is not int or type(last) is not int or type(digest) is not str:
        msg = f"{entry!r} is not a transaction"
        raise TypeError(msg)
    return Written(first, last, digest)


def digest_of(staged: Iterable[Staged]) -> str:
    """Return a digest of the names of files, which contain the attempt."""
    names = "\n".join(staged_file.name for staged_file in staged)
    return hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
