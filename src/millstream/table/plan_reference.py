"""Where a compiled plan is.

Promises: PyFlink's names.
Does not know: what a plan holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path


class PlanReference(ABC):
    """A plan in a file, in text, or in bytes."""

    @staticmethod
    def from_file(path: str) -> FilePlanReference:
        """A plan in a file."""
        return FilePlanReference(path)

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
        return Path(self.path).read_text()


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
