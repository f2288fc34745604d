"""Where a compiled plan is.

Promises: PyFlink's names.
Does not know: what a plan holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import ExternalError, UserError


class CannotUsePlanFile(ExternalError):
    """The file of a plan cannot be read or written."""

    hint = "see that it is there, and that this process may use it"

    def __init__(self, path: str, problem: Exception) -> None:
        self.path = path
        said = getattr(problem, "strerror", None) or str(problem)
        super().__init__(f"the plan file '{path}' cannot be used: {said.lower()}")


def local_path(path: str) -> Path:
    """The path of a file that is named by its path or its URI."""
    scheme, colon, rest = path.partition("://")
    if colon and scheme != "file":
        message = f"plans are kept in files of this machine, not in '{scheme}' storage"
        raise UserError(message)
    return Path(rest if colon else path)


class PlanReference(ABC):
    """A plan in a file, in text, or in bytes."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).items()))

    @staticmethod
    def from_file(path: str | Path) -> FilePlanReference:
        """A plan in a file."""
        return FilePlanReference(str(path))

    @staticmethod
    def from_json_string(json_string: str) -> JsonContentPlanReference:
        """A plan in text."""
        return JsonContentPlanReference(json_string)

    @staticmethod
    def from_smile_bytes(smile_bytes: bytes) -> BytesContentPlanReference:
        """A plan in bytes."""
        return BytesContentPlanReference(smile_bytes)

    @abstractmethod
    def text(self) -> str:
        """The plan as JSON."""


@dataclass(frozen=True)
class FilePlanReference(PlanReference):
    """A plan in a file."""

    path: str

    def get_file(self) -> str:
        """The file."""
        return self.path

    def text(self) -> str:
        """As PlanReference promises."""
        try:
            return local_path(self.path).read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise CannotUsePlanFile(self.path, problem) from problem


@dataclass(frozen=True)
class JsonContentPlanReference(PlanReference):
    """A plan in text."""

    content: str

    def get_content(self) -> str:
        """The text."""
        return self.content

    def text(self) -> str:
        """As PlanReference promises."""
        return self.content


@dataclass(frozen=True)
class BytesContentPlanReference(PlanReference):
    """A plan in bytes."""

    content: bytes

    def get_content(self) -> bytes:
        """The bytes."""
        return self.content

    def text(self) -> str:
        """As PlanReference promises."""
        return self.content.decode()
