"""The sinks of simulated jobs, which write to the disk of a world.

Promises: `visible` returns the rows that a reader of the output sees, as text, sorted. The file sink is the real one,
on the simulated disk.
Does not know: faults, crashes."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from millstream.connector.serialization_schema import Encoder
from millstream.connector.sink import Sink
from millstream.connectors.files import FileSink
from millstream.connectors.files.buckets import BucketAssigner
from millstream.files.contract import FileSystem
from millstream.files.remote import register_file_system
from millstream_chaos.outputs.visible_output import VisibleOutput, read_visible_rows
from millstream_chaos.storage.memory_files import Named

_SCHEME = "simulated"


class SimulatedSink(Protocol):
    """A sink of a simulated job."""

    def build(self, files: Named, directory: str) -> Sink:
        """Create the sink, with its output below a directory."""

    def visible(self, disk: FileSystem, directory: str) -> list[str]:
        """Return the visible rows."""


@dataclass(frozen=True)
class Visible:
    """The strict sink: output of one epoch from two attempts is an error. See `VisibleOutput`."""

    repeats: bool = False

    def build(self, files: Named, directory: str) -> Sink:
        """Create the sink, with its output below a directory."""
        return VisibleOutput(files, directory, self.repeats)

    def visible(self, disk: FileSystem, directory: str) -> list[str]:
        """Return the visible rows."""
        return read_visible_rows(disk, directory)


class PartFiles:
    """The file sink, with one row in each line."""

    def build(self, files: Named, directory: str) -> Sink:
        """Create the sink, with its output below a directory."""
        register_file_system(_SCHEME, SimulatedFiles())
        builder = FileSink.for_row_format(f"{_SCHEME}://{files.name}{directory}", Rows())
        return builder.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()

    def visible(self, disk: FileSystem, directory: str) -> list[str]:
        """Return the lines of all part files."""
        names = [name for name in disk.list(directory) if not name.startswith((".", "_"))]
        return sorted(line for name in names for line in disk.read_bytes(f"{directory}/{name}").decode().splitlines())


SINKS: dict[str, SimulatedSink] = {"visible": Visible(), "repeating": Visible(repeats=True), "files": PartFiles()}


class Rows(Encoder):
    """Encodes a row as a line of text."""

    def encode(self, element: Any, stream: BinaryIO) -> None:
        """Write one row."""
        stream.write(f"{element!r}\n".encode())


class SimulatedFiles(FileSystem):
    """The disks of worlds under one scheme: `simulated://<name>/<path>` is a path on the disk of that name."""

    @staticmethod
    def _at(path: str) -> tuple[Named, str]:
        name, _, rest = path.removeprefix(f"{_SCHEME}://").partition("/")
        return Named(name), f"/{rest}"

    def write_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        disk, local = self._at(path)
        disk.write_bytes(local, data, sync)

    def append_bytes(self, path: str, data: bytes, sync: bool) -> None:  # noqa: D102
        disk, local = self._at(path)
        disk.append_bytes(local, data, sync)

    def truncate(self, path: str, size: int, sync: bool) -> None:  # noqa: D102
        disk, local = self._at(path)
        disk.truncate(local, size, sync)

    def replace(self, source: str, target: str) -> None:  # noqa: D102
        disk, local = self._at(source)
        disk.replace(local, self._at(target)[1])

    def move_new(self, source: str, target: str) -> None:  # noqa: D102
        disk, local = self._at(source)
        disk.move_new(local, self._at(target)[1])

    def remove(self, path: str) -> None:  # noqa: D102
        disk, local = self._at(path)
        disk.remove(local)

    def make_dirs(self, path: str) -> None:  # noqa: D102
        disk, local = self._at(path)
        disk.make_dirs(local)

    def sync_dir(self, path: str) -> None:  # noqa: D102
        disk, local = self._at(path)
        disk.sync_dir(local)

    def read_bytes(self, path: str) -> bytes:  # noqa: D102
        disk, local = self._at(path)
        return disk.read_bytes(local)

    def exists(self, path: str) -> bool:  # noqa: D102
        disk, local = self._at(path)
        return disk.exists(local)

    def list(self, path: str) -> builtins.list[str]:  # noqa: D102
        disk, local = self._at(path)
        return disk.list(local)

    def size(self, path: str) -> int:  # noqa: D102
        disk, local = self._at(path)
        return disk.size(local)

    def resolve(self, path: str) -> str:  # noqa: D102
        return path
