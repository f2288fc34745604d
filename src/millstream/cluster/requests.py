"""Orders to a running job from other processes: files in the job's directory on its checkpoint storage.

    <root>/<job>/requests/<id>.json       what is asked for: {"rescale": 4}, {"rescale": {"uid": 2}}
    <root>/<job>/requests/<id>.answer     what came of it: {"slots": 4}, {"refused": ..., "hint": ...}, {"again": true}

Promises: a request that is taken is answered, once it is carried out or with the reason why not; what was asked before
this driver led is not done by surprise: whoever asked is told to ask again. What is no request is refused and never
run; a job goes on whatever happens to these files.
Does not know: how anything is carried out, or who asks."""

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
from millstream.cluster.rescale import Wanted
from millstream.errors import ExternalError, UserError
from millstream.files.errors import MissingFile

_log = logging.getLogger("millstream.requests")

DIRECTORY = "requests"
_REQUEST, _ANSWER = ".json", ".answer"
_ID = re.compile(r"[0-9A-Za-z-]{1,100}")
_LOOK_EVERY = 0.5  # seconds: a look is a listing of a directory
_LOOK_REMOTELY_EVERY = 5.0  # seconds: each listing of an object store is a request that is paid for
_POLL, _POLL_REMOTELY = 0.1, 1.0  # seconds between two looks for an answer
_ANSWER_KEPT = 3600.0  # seconds; after that nobody waits for an answer any more
_LARGEST = 1 << 16


class NotARequest(UserError):
    """A file that asks for nothing that is known."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this is no request: {why}", hint='{"rescale": 4}, or {"rescale": {"uid of an operator": 2}}')


class Refused(UserError):
    """The job did not do what it was asked for."""


class NoAnswer(ExternalError):
    """Nobody answered."""

    hint = "is the job running, and is this its directory? it looks for requests between two epochs"

    def __init__(self, directory: str, seconds: float) -> None:
        super().__init__(f"the job in {directory} has not answered within {seconds:g} s")


class Requests:
    """The requests to one job, as the driver that leads it sees them. `rescale` gives its order to the job."""

    def __init__(self, storage: CheckpointStorage, rescale: Callable[[Wanted], Future[int]]) -> None:
        self._storage, self._rescale = storage, rescale
        self._looked_at: float | None = None
        self._taken: set[str] = set()
        self._answers: dict[str, float] = {}  # when each was first seen

    def look(self, at: float) -> None:
        """Take what is asked for, if it is time to look; `at` is monotonic, in seconds."""
        every = _LOOK_REMOTELY_EVERY if self._storage.is_remote else _LOOK_EVERY
        if self._looked_at is not None and at - self._looked_at < every:
            return
        first, self._looked_at = self._looked_at is None, at
        names = self._names()
        self._delete_unread(names, at)
        for own in self._asked(names):
            if first:
                self._answer(own, {"again": True})
            else:
                self._taken.add(own)
                self._take(own)

    def close(self, status: str) -> None:
        """The job is over; what nobody took is refused. Not for a driver that never led."""
        if self._looked_at is not None:
            for own in self._asked(self._names()):
                self._answer(own, {"refused": f"the job has ended: it is {status}"})

    def _names(self) -> list[str]:
        try:
            return [name.rpartition("/")[2] for name in self._storage.files(DIRECTORY)]
        except ExternalError as problem:
            _log.debug("requests cannot be looked for: %s", problem)
            return []

    def _delete_unread(self, names: list[str], at: float) -> None:
        """Whoever asks deletes the answer; one who died while waiting would leave it for ever."""
        answered = (name.removesuffix(_ANSWER) for name in names if name.endswith(_ANSWER))
        self._answers = {own: self._answers.get(own, at) for own in answered if _ID.fullmatch(own)}
        for own, since in self._answers.items():
            if at - since > _ANSWER_KEPT:
                with suppress(ExternalError):
                    self._storage.delete(_name(self._storage, own, _ANSWER))

    def _asked(self, names: list[str]) -> list[str]:
        found = [name.removesuffix(_REQUEST) for name in names if name.endswith(_REQUEST)]
        return [own for own in found if _ID.fullmatch(own) and own not in self._taken]

    def _take(self, own: str) -> None:
        try:
            data = self._storage.read_unverified(_name(self._storage, own, _REQUEST))
        except ExternalError as problem:  # it was taken back, or can be read later
            _log.debug("request %s cannot be read: %s", own, problem)
            self._taken.discard(own)
            return
        try:
            ordered = self._rescale(_wanted(data))
        except UserError as problem:
            self._answer(own, {"refused": problem.message, "hint": problem.hint})
        else:
            _log.info("request %s is taken", own)
            ordered.add_done_callback(partial(self._done, own))

    def _done(self, own: str, ordered: Future[int]) -> None:
        if ordered.cancelled():
            self._answer(own, {"refused": "a later order took its place, or the job has ended"})
        else:
            self._answer(own, {"slots": ordered.result()})

    def _answer(self, own: str, answer: Mapping[str, Any]) -> None:
        """A crash between the two leaves a request that the next driver has asked again, and an answer to it."""
        try:
            self._storage.write(f"{DIRECTORY}/{own}{_ANSWER}", json.dumps(answer).encode())
            self._storage.delete(_name(self._storage, own, _REQUEST))
        except ExternalError as problem:
            _log.warning("request %s cannot be answered: %s", own, problem)
        else:
            self._taken.discard(own)


def ask(
    storage: CheckpointStorage,
    wanted: Wanted,
    *,
    ids: Callable[[], str],
    seconds: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> int:
    """Have the running job of a storage rescaled by whoever leads it; gives its number of slots once it is."""
    until = now() + seconds
    while True:
        answer = _asked_once(storage, wanted, ids(), until, now, sleep)
        if answer is None:
            raise NoAnswer(f"{storage.root}/{storage.job}".rstrip("/"), seconds)
        if "refused" in answer:
            raise Refused(str(answer["refused"]), hint=answer.get("hint"))
        if "slots" in answer:
            return int(answer["slots"])
        # {"again": true}: a driver has begun after we asked


def _asked_once(
    storage: CheckpointStorage,
    wanted: Wanted,
    own: str,
    until: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> dict[str, Any] | None:
    request, answer = (_name(storage, own, ending) for ending in (_REQUEST, _ANSWER))
    asked = {"rescale": wanted if isinstance(wanted, int) else dict(wanted)}
    storage.write(f"{DIRECTORY}/{own}{_REQUEST}", json.dumps(asked).encode())
    try:
        while now() < until:
            sleep(_POLL_REMOTELY if storage.is_remote else _POLL)
            try:
                found: dict[str, Any] = json.loads(storage.read_unverified(answer))
            except MissingFile:
                continue
            return found
        return None
    finally:
        storage.delete(request)  # whoever asked waits no longer
        storage.delete(answer)


def _wanted(data: bytes) -> Wanted:
    if len(data) > _LARGEST:
        why = f"it has {len(data)} bytes"
        raise NotARequest(why)
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError) as problem:
        raise NotARequest(str(problem)) from problem
    wanted = asked.get("rescale") if isinstance(asked, dict) and len(asked) == 1 else None
    if isinstance(wanted, int) or (isinstance(wanted, dict) and wanted):
        return wanted  # the numbers are looked at by whoever lays the program out anew
    raise NotARequest(json.dumps(asked)[:200])


def _name(storage: CheckpointStorage, own: str, ending: str) -> str:
    return f"{storage.job}/{DIRECTORY}/{own}{ending}" if storage.job else f"{DIRECTORY}/{own}{ending}"
