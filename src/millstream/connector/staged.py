"""Names of staged output, and committables that refer to it.

Promises: a name belongs to one attempt of one subtask in one epoch; `parse` is the inverse of `str`, so stored names
stay readable. A committable of another sink is refused.
Does not know: where output is staged, or how it becomes visible."""

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
    """The name of the output that one attempt of a subtask staged in one epoch. All names of a sink have its owner."""

    owner: str
    epoch: int
    subtask: int
    attempt: str

    @property
    def generation(self) -> int:
        """The generation of the job to which the attempt belongs."""
        head = self.attempt.split("-")[0]
        return int(head) if head.isdigit() else -1

    def is_obsolete(self, context: WriterContext) -> bool:
        """Return whether this will never be committed: it was staged before the last recovery of the job."""
        return self.generation < context.recovered

    def __str__(self) -> str:
        """Return the name as the name of a file."""
        return f"{self.owner}@{self.epoch}@{self.subtask}-{self.attempt}"

    @classmethod
    def of(cls, context: WriterContext) -> Self:
        """Create the name of a writer's output."""
        owner = "-".join(quote(part, safe="") for part in (context.job, context.sink) if part)
        return cls(owner, context.epoch, context.subtask, quote(context.attempt, safe=""))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse the text form of a name; None if the text is not a name."""
        match = _NAME.fullmatch(text)
        if match is None:
            return None
        return cls(match["owner"], int(match["epoch"]), int(match["subtask"]), match["attempt"])


def newest_epochs(names: Iterable[StagedName]) -> dict[str, int]:
    """Return the newest epoch of each owner."""
    epochs: dict[str, int] = {}
    for name in names:
        epochs[name.owner] = max(epochs.get(name.owner, -1), name.epoch)
    return epochs


def find_obsolete(names: Iterable[str], committed: Iterable[str]) -> list[str]:
    """Return the names that will never be committed: of the same owners as committed output, and not newer."""
    newest = newest_epochs(name for name in map(StagedName.parse, committed) if name is not None)
    parsed = ((text, StagedName.parse(text)) for text in names)
    return [text for text, name in parsed if name is not None and name.epoch <= newest.get(name.owner, -1)]


@dataclass(frozen=True, slots=True)
class Committable:
    """Base of committables that are dataclasses, with their JSON form."""

    #: The type of output that it names, for error messages.
    output: ClassVar[str] = "staged output"

    def to_json(self) -> dict[str, Any]:
        """Return the committable as a JSON value."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """Return the inverse of `to_json`; raises NotStaged for another value."""
        field_names = {field.name for field in fields(cls)}
        required_names = {field.name for field in fields(cls) if field.default is MISSING}
        if not isinstance(data, dict) or not required_names <= set(data) <= field_names:
            raise NotStaged(data, cls.output)
        return cls(**data)
