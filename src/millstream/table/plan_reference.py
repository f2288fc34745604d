"""PlanReference: where a compiled plan is stored.

Promises: PyFlink's names.
Does not know: what a plan contains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import ExternalError, InvalidArgument


class CannotUsePlanFile(ExternalError):
    """A plan file cannot be read or written."""

    hint = "check that the file exists and that this process has access to it"

    def __init__(self, path: str, problem: Exception) -> None:
        self.path = path
        reason = getattr(problem, "strerror", None) or str(problem)
        super().__init__(f"the plan file '{path}' cannot be used: {reason.lower()}")


def local_path(path: str) -> Path:
    """Return the path of a local file that is given by its path or its `file` URI."""
    scheme, colon, rest = path.partition("://")
    if colon and scheme != "file":
        message = f"plans are stored in local files, not in '{scheme}' storage"
        raise InvalidArgument(message, hint="use a path on this machine")
    return Path(rest if colon else path)


class PlanReference(ABC):
    """Refer to a compiled plan in a file, in a JSON string, or in bytes.

    Example:
        >>> PlanReference.from_file("/plans/orders.json").get_file()
        '/plans/orders.json'

    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).items()))

    @staticmethod
    def from_file(path: str | Path) -> FilePlanReference:
        """Refer to a plan in a local file.

        Args:
            path: The path of the file.

        """
        return FilePlanReference(str(path))

    @staticmethod
    def from_json_string(json_string: str) -> JsonContentPlanReference:
        """Refer to a plan in a JSON string.

        Args:
            json_string: The plan.

        """
        return JsonContentPlanReference(json_string)

    @staticmethod
    def from_smile_bytes(smile_bytes: bytes) -> BytesContentPlanReference:
        """Refer to a plan in bytes, as `CompiledPlan.as_smile_bytes` returns them.

        Args:
            smile_bytes: The plan.

        """
        return BytesContentPlanReference(smile_bytes)

    @abstractmethod
    def text(self) -> str:
        """Return the plan as JSON."""

    def name(self) -> str:
        """Return how error messages name the plan."""
        return "the text"


@dataclass(frozen=True)
class FilePlanReference(PlanReference):
    """Refer to a plan in a local file."""

    path: str

    def name(self) -> str:
        """Return the path of the file in quotes."""
        return f"'{self.path}'"

    def get_file(self) -> str:
        """Return the path of the file."""
        return self.path

    def text(self) -> str:
        """Read the file.

        Raises:
            CannotUsePlanFile: If the file cannot be read.

        """
        try:
            return local_path(self.path).read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise CannotUsePlanFile(self.path, problem) from problem


@dataclass(frozen=True)
class JsonContentPlanReference(PlanReference):
    """Refer to a plan in a JSON string."""

    content: str

    def get_content(self) -> str:
        """Return the JSON string."""
        return self.content

    def text(self) -> str:
        """Return the JSON string."""
        return self.content


@dataclass(frozen=True)
class BytesContentPlanReference(PlanReference):
    """Refer to a plan in bytes."""

    content: bytes

    def get_content(self) -> bytes:
        """Return the bytes."""
        return self.content

    def text(self) -> str:
        """Decode the bytes."""
        return self.content.decode()
