"""The sinks that a case of the simulation can have, and what is visible of their output.

Promises: a case is run with any sink that can be built on the files of a world; `visible` gives the rows that a reader
of the output sees, as text, sorted. The file sink is the real one, on the simulated disk.
Does not know: faults, crashes. To start a job again needs nothing more than its files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from millstream.checkpoint.file_system import FileSystem
from millstream.connector.serialization_schema import Encoder
from millstream.connector.sink import Sink
from millstream.connectors.files import FileSink
from millstream.connectors.files.buckets import BucketAssigner
from millstream.connectors.files.filesystems import Files, register
from millstream.testing.memory_files import Named
from millstream.testing.visible_output import VisibleOutput, shown

_SCHEME = "simulated"


class CaseSink(Protocol):
    """A sink of a case."""

    def build(self, files: Named, directory: str) -> Sink:
        """The sink of a job whose output goes below a directory."""

    def visible(self, disk: FileSystem, directory: str) -> list[str]:
        """The rows that anyone can see."""


@dataclass(frozen=True)
class Visible:
    """The strict sink of simulations: an epoch that is shown from two attempts is an error. See `VisibleOutput`."""

    repeats: bool = False

    def build(self, files: Named, directory: str) -> Sink:
        """The sink of a job whose output goes below a directory."""
        return VisibleOutput(files, directory, self.repeats)

    def visible(self, disk: FileSystem, directory: str) -> list[str]:
        """The rows that anyone can see."""
        return shown(disk, directory)


class PartFiles:
    """The file sink, one row to a line."""

    def build(self, files: Named, directory: str) -> Sink:
        """The sink of a job whose output goes below a directory."""
        register(_SCHEME, SimulatedFiles())
        builder = FileSink.for_row_format(f"{_SCHEME}://{files.name}{directory}", Rows())
        return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()

    def visible(self, disk: FileSystem, directory: str) -> list[str]:
        """The lines of all part files."""
        names = [name for name in disk.list(directory) if not name.startswith((".", "_"))]
        return sorted(line for name in names for line in disk.read_bytes(f"{directory}/{name}").decode().splitlines())


SINKS: dict[str, CaseSink] = {"visible": Visible(), "repeating": Visible(repeats=True), "files": PartFiles()}


class Rows(Encoder):
    """A row as text, in a line of its own."""

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write one row."""
        stream.write(f"{element!r}\n".encode())


class _Writing(io.BytesIO):
    def __init__(self, path: str, content: bytes) -> None:
        super().__init__()
        self.path = path
        self.write(content)


class SimulatedFiles(Files):
    """The disk of a world as the file connector sees a local one: the same changes and syncs, in the same order."""

    @staticmethod
    def _at(path: str) -> tuple[Named, str]:
        name, _, rest = path.removeprefix(f"{_SCHEME}://").partition("/")
        return Named(name), f"/{rest}"

    def open(self, path: str) -> BinaryIO:
        """As Files promises."""
        files, place = self._at(path)
        return io.BytesIO(files.read_bytes(place))

    def create(self, path: str, *, append: bool = False) -> BinaryIO:
        """As Files promises; what is written reaches the disk when it is finished."""
        files, place = self._at(path)
        files.make_dirs(place.rpartition("/")[0])
        return _Writing(path, files.read_bytes(place) if append and files.exists(place) else b"")

    def finish(self, stream: BinaryIO) -> None:
        """As Files promises."""
        assert isinstance(stream, _Writing)
        files, place = self._at(stream.path)
        files.write_bytes(place, stream.getvalue(), True)
        stream.close()

    def abandon(self, stream: BinaryIO) -> None:
        """As Files promises."""
        stream.close()

    def exists(self, path: str) -> bool:
        """As Files promises."""
        files, place = self._at(path)
        return files.exists(place)

    def is_directory(self, path: str) -> bool:
        """As Files promises."""
        files, place = self._at(path)
        with suppress(FileNotFoundError):
            files.list(place)
            return True
        return False

    def look_at(self, path: str) -> tuple[int, int]:
        """Its size; a file is never changed here."""
        files, place = self._at(path)
        return files.size(place), 0

    def rename(self, source: str, target: str) -> None:
        """As Files promises, with the syncs of `LocalFiles`."""
        files, place = self._at(target)
        _, before = self._at(source)
        folder, other = place.rpartition("/")[0], before.rpartition("/")[0]
        files.make_dirs(folder)
        files.replace(before, place)
        for each in dict.fromkeys((folder, other)):
            files.sync_dir(each)

    def copy(self, source: str, target: str) -> None:
        """As Files promises."""
        with self.open(source) as read, self.writing(f"{target}.tmp") as written:
            written.write(read.read())
        self.rename(f"{target}.tmp", target)

    def remove(self, path: str) -> None:
        """As Files promises."""
        files, place = self._at(path)
        files.remove(place)

    def names(self, path: str) -> list[str]:
        """As Files promises."""
        files, place = self._at(path)
        try:
            return files.list(place)
        except FileNotFoundError:
            return []

    def walk(self, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        """As Files promises."""
        names = self.names(path)
        folders = [name for name in names if self.is_directory(f"{path}/{name}")]
        yield path, folders, [name for name in names if name not in folders]
        for folder in folders:
            yield from self.walk(f"{path}/{folder}")

    def sync(self, path: str) -> None:
        """As Files promises."""
        files, place = self._at(path)
        files.sync_dir(place)

    def remove_directory(self, path: str) -> None:
        """As Files promises."""
        files, place = self._at(path)
        with suppress(OSError):
            files.remove(place)
