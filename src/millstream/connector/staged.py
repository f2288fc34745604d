"""Output that waits for its checkpoint: what it is called, and how a committable names it.

Promises: a name belongs to one attempt of one subtask at one epoch; `parse` is the inverse of `str`, so names that were
stored are understood for ever. A committable that is not of its sink is refused.
Does not know: where output waits, or how it becomes visible."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Self
from urllib.parse import quote

from millstream.connector.sink import WriterContext
from millstream.errors import UserError

_NAME = re.compile(r"(?P<owner>[\w%.~-]+)@(?P<epoch>\d+)@(?P<subtask>\d+)-(?P<attempt>[\w%.~-]*)")


class NotStaged(UserError):
    """A committable that this sink did not write."""

    hint = "the checkpoint was not written by this sink, or was tampered with"

    def __init__(self, committable: object, output: str) -> None:
        super().__init__(f"{committable!r:.200} does not name {output}")


@dataclass(frozen=True, slots=True)
class StagedName:
    """The name of what one attempt of one subtask staged in one epoch. All names of a job's sink have its owner."""

    owner: str
    epoch: int
    subtask: int
    attempt: str

    @property
    def generation(self) -> int:
        """Which deployment of the job the attempt belongs to."""
        head = self.attempt.split("-")[0]
        return int(head) if head.isdigit() else -1

    def outlived(self, context: WriterContext) -> bool:
        """Whether nobody will commit this any more: it was staged before the last recovery of the job."""
        return self.generation < context.recovered

    def __str__(self) -> str:
        """As the name of a file."""
        return f"{self.owner}@{self.epoch}@{self.subtask}-{self.attempt}"

    @classmethod
    def of(cls, context: WriterContext) -> Self:
        """The name for a writer."""
        owner = "-".join(quote(part, safe="") for part in (context.job, context.sink) if part)
        return cls(owner, context.epoch, context.subtask, quote(context.attempt, safe=""))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The inverse of `str`; None for what is no such name."""
        found = _NAME.fullmatch(text)
        if found is None:
            return None
        return cls(found["owner"], int(found["epoch"]), int(found["subtask"]), found["attempt"])


def latest(names: Iterable[StagedName]) -> dict[str, int]:
    """The newest epoch of each owner."""
    epochs: dict[str, int] = {}
    for name in names:
        epochs[name.owner] = max(epochs.get(name.owner, -1), name.epoch)
    return epochs


def outlived(names: Iterable[str], committed: Iterable[str]) -> list[str]:
    """Those of `names` that nobody will commit: of the same owners as what is committed, and no newer."""
    newest = latest(name for name in map(StagedName.parse, committed) if name is not None)
    parsed = ((text, StagedName.parse(text)) for text in names)
    return [text for text, name in parsed if name is not None and name.epoch <= newest.get(name.owner, -1)]


@dataclass(frozen=True, slots=True)
class Committable:
    """A committable with fields, as a JSON value and back."""

    #: What it names, for the message about one that does not.
    output: ClassVar[str] = "staged output"

    def to_json(self) -> dict[str, Any]:
        """The committable as a JSON value."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The inverse of `to_json`."""
        known = {field.name for field in fields(cls)}
        needed = {field.name for field in fields(cls) if field.default is MISSING}
        if not isinstance(data, dict) or not needed <= set(data) <= known:
            raise NotStaged(data, cls.output)
        return cls(**data)
