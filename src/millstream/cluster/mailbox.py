"""Mailbox of a running job: requests of other processes, as files in the job's directory on its checkpoint storage.

    <root>/<job>/requests/<id>.json       the request: {"rescale": 4}, {"rescale": {"uid": 2}}
    <root>/<job>/requests/<id>.answer     the answer: {"slots": 4}, {"refused": ..., "hint": ...}, {"again": true}

Promises: a request that is read is answered, when it is carried out or with the reason why not. A request that is older
than this driver's leadership is answered with "again", so that it is not carried out unexpectedly. A file that is not a
request is refused and never executed. Nothing that happens to these files affects the job.
Does not know: how requests are carried out, and who sends them."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.rescale import RequestedParallelism
from millstream.errors import ExternalError, UserError
from millstream.files.errors import MissingFile

_log = logging.getLogger("millstream.requests")

DIRECTORY = "requests"
_REQUEST, _ANSWER = ".json", ".answer"
_ID = re.compile(r"[0-9A-Za-z-]{1,100}")
_READ_EVERY = 0.5  # seconds between two listings of the directory
_READ_REMOTELY_EVERY = 5.0  # seconds: each listing of an object store is a paid request
_POLL, _POLL_REMOTELY = 0.1, 1.0  # seconds between two reads of the answer
_ANSWER_KEPT = 3600.0  # seconds, after which nobody waits for an answer
_LARGEST = 1 << 16  # bytes of a request


class InvalidRequest(UserError):
    """A file in the mailbox is not a request."""

    def __init__(self, why: str) -> None:
        super().__init__(f"not a request: {why}", hint='write {"rescale": 4} or {"rescale": {"uid of an operator": 2}}')


class RequestRefused(UserError):
    """The job refused a request."""


class NoAnswer(ExternalError):
    """No driver answered a request in time."""

    hint = "check that the job runs and that this is its directory; the job reads requests between two epochs"

    def __init__(self, directory: str, seconds: float) -> None:
        super().__init__(f"the job in {directory} has not answered within {seconds:g} s")


class Mailbox:
    """The requests to one job, as its leading driver reads them. `rescale` requests another parallelism of the job."""

    def __init__(self, storage: CheckpointStorage, rescale: Callable[[RequestedParallelism], Future[int]]) -> None:
        self._storage, self._rescale = storage, rescale
        self._read_at: float | None = None
        self._read_ids: set[str] = set()
        self._answers: dict[str, float] = {}  # when each answer was first seen

    def read(self, at: float) -> None:
        """Read new requests, if the last time was long enough ago; `at` is monotonic, in seconds."""
        interval = _READ_REMOTELY_EVERY if self._storage.is_remote else _READ_EVERY
        if self._read_at is not None and at - self._read_at < interval:
            return
        is_first, self._read_at = self._read_at is None, at
        names = self._names()
        self._delete_unread(names, at)
        for request_id in self._unread_ids(names):
            if is_first:
                self._answer(request_id, {"again": True})
            else:
                self._read_ids.add(request_id)
                self._carry_out(request_id)

    def close(self, status: str) -> None:
        """Refuse requests that were not read: the job has ended. A driver that never led leaves them."""
        if self._read_at is not None:
            for request_id in self._unread_ids(self._names()):
                self._answer(request_id, {"refused": f"the job has ended: it is {status}"})

    def _names(self) -> list[str]:
        try:
            return [name.rpartition("/")[2] for name in self._storage.files(DIRECTORY)]
        except ExternalError as problem:
            _log.debug("the mailbox cannot be listed: %s", problem)
            return []

    def _delete_unread(self, names: list[str], at: float) -> None:
        """Delete old answers. Senders delete their answers, but a sender may die while it waits."""
        answered = (name.removesuffix(_ANSWER) for name in names if name.endswith(_ANSWER))
        self._answers = {
            request_id: self._answers.get(request_id, at) for request_id in answered if _ID.fullmatch(request_id)
        }
        for request_id, since in self._answers.items():
            if at - since > _ANSWER_KEPT:
                with suppress(ExternalError):
                    self._storage.delete(_name(self._storage, request_id, _ANSWER))

    def _unread_ids(self, names: list[str]) -> list[str]:
        ids = [name.removesuffix(_REQUEST) for name in names if name.endswith(_REQUEST)]
        return [request_id for request_id in ids if _ID.fullmatch(request_id) and request_id not in self._read_ids]

    def _carry_out(self, request_id: str) -> None:
        try:
            data = self._storage.read_unverified(_name(self._storage, request_id, _REQUEST))
        except ExternalError as problem:  # the sender has deleted it, or it can be read later
            _log.debug("request %s cannot be read: %s", request_id, problem)
            self._read_ids.discard(request_id)
            return
        try:
            rescaled = self._rescale(_parse(data))
        except UserError as problem:
            self._answer(request_id, {"refused": problem.message, "hint": problem.hint})
        else:
            _log.info("request %s is accepted", request_id)
            rescaled.add_done_callback(partial(self._done, request_id))

    def _done(self, request_id: str, rescaled: Future[int]) -> None:
        if rescaled.cancelled():
            self._answer(request_id, {"refused": "a later request replaced it, or the job has ended"})
        else:
            self._answer(request_id, {"slots": rescaled.result()})

    def _answer(self, request_id: str, answer: Mapping[str, Any]) -> None:
        """Write the answer, then delete the request. A crash in between leaves both; the next driver answers again."""
        try:
            self._storage.write(f"{DIRECTORY}/{request_id}{_ANSWER}", json.dumps(answer).encode())
            self._storage.delete(_name(self._storage, request_id, _REQUEST))
        except ExternalError as problem:
            _log.warning("request %s cannot be answered: %s", request_id, problem)
        else:
            self._read_ids.discard(request_id)


def request_rescale(
    storage: CheckpointStorage,
    parallelism: RequestedParallelism,
    *,
    ids: Callable[[], str],
    seconds: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> int:
    """Request another parallelism of the job that runs on a storage, and return its number of slots when it has it."""
    until = now() + seconds
    while True:
        answer = _request_once(storage, parallelism, ids(), until, now, sleep)
        if answer is None:
            raise NoAnswer(f"{storage.root}/{storage.job}".rstrip("/"), seconds)
        if "refused" in answer:
            raise RequestRefused(str(answer["refused"]), hint=answer.get("hint"))
        if "slots" in answer:
            return int(answer["slots"])
        # {"again": true}: the driver began to lead after the request was sent


def _request_once(
    storage: CheckpointStorage,
    parallelism: RequestedParallelism,
    request_id: str,
    until: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> dict[str, Any] | None:
    request, answer = (_name(storage, request_id, ending) for ending in (_REQUEST, _ANSWER))
    body = {"rescale": parallelism if isinstance(parallelism, int) else dict(parallelism)}
    storage.write(f"{DIRECTORY}/{request_id}{_REQUEST}", json.dumps(body).encode())
    try:
        while now() < until:
            sleep(_POLL_REMOTELY if storage.is_remote else _POLL)
            try:
                reply: dict[str, Any] = json.loads(storage.read_unverified(answer))
            except MissingFile:
                continue
            return reply
        return None
    finally:
        storage.delete(request)  # nobody waits for it any more
        storage.delete(answer)


def _parse(data: bytes) -> RequestedParallelism:
    if len(data) > _LARGEST:
        why = f"it has {len(data)} bytes"
        raise InvalidRequest(why)
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise InvalidRequest(str(problem)) from problem
    parallelism = body.get("rescale") if isinstance(body, dict) and len(body) == 1 else None
    if isinstance(parallelism, int) or (isinstance(parallelism, dict) and parallelism):
        return parallelism  # `rescale_graph` checks the numbers
    raise InvalidRequest(json.dumps(body)[:200])


def _name(storage: CheckpointStorage, request_id: str, ending: str) -> str:
    return f"{storage.job}/{DIRECTORY}/{request_id}{ending}" if storage.job else f"{DIRECTORY}/{request_id}{ending}"
