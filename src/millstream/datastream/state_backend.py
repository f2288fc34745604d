"""Where keyed state lives while the job runs, as the program sets it.

Promises: `apply_to` writes the choice into a configuration, which is all that the rest of the system reads.
Does not know: how state is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum

from millstream import options
from millstream.config.configuration import Configuration
from millstream.errors import UserError

__all__ = ["EmbeddedRocksDBStateBackend", "HashMapStateBackend", "PredefinedOptions", "StateBackend"]

# keys of Flink that tune RocksDB: kept, and listed as ignored, because the disk backend here is another one
ROCKSDB_DIRS = "state.backend.rocksdb.localdir"
ROCKSDB_TRANSFER_THREADS = "state.backend.rocksdb.checkpoint.transfer.thread.num"
ROCKSDB_PREDEFINED = "state.backend.rocksdb.predefined-options"
ROCKSDB_FACTORY = "state.backend.rocksdb.options-factory"


class InvalidStateBackend(UserError, TypeError):
    """A parameter of a state backend of the wrong kind."""

    def __init__(self, parameter: str, value: object, taken: str) -> None:
        self.parameter, self.value, self.taken = parameter, value, taken
        super().__init__(f"{parameter} of a state backend must be {taken}, not {value!r}")


class StateBackend(ABC):
    """A home for keyed state."""

    @abstractmethod
    def apply_to(self, configuration: Configuration) -> None:
        """Choose this backend in a configuration."""


@dataclass(frozen=True)
class HashMapStateBackend(StateBackend):
    """State as Python objects in memory."""

    def apply_to(self, configuration: Configuration) -> None:
        """Choose this backend in a configuration."""
        configuration.set(options.STATE_BACKEND, "hashmap")


class PredefinedOptions(Enum):
    """RocksDB's profiles for kinds of disks; accepted, without meaning here."""

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """State on disk, larger than memory. Here LMDB holds it, so what tunes RocksDB is kept but does nothing."""

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            given, parameter = enable_incremental_checkpointing, "enable_incremental_checkpointing"
            raise InvalidStateBackend(parameter, given, "True, False or None")
        self._incremental = enable_incremental_checkpointing
        self._paths: tuple[str, ...] = ()
        self._predefined_options = PredefinedOptions.DEFAULT
        self._options_factory: str | None = None
        self._transfer_threads: int | None = None

    def apply_to(self, configuration: Configuration) -> None:
        """Choose this backend in a configuration."""
        configuration.set(options.STATE_BACKEND, "rocksdb")
        if self._incremental is not None:
            configuration.set(options.INCREMENTAL_CHECKPOINTS, self._incremental)
        if self._paths:
            configuration.set(ROCKSDB_DIRS, ",".join(self._paths))
        if self._transfer_threads is not None:
            configuration.set(ROCKSDB_TRANSFER_THREADS, self._transfer_threads)
        if self._predefined_options is not PredefinedOptions.DEFAULT:
            configuration.set(ROCKSDB_PREDEFINED, self._predefined_options)
        if self._options_factory is not None:
            configuration.set(ROCKSDB_FACTORY, self._options_factory)

    def set_db_storage_paths(self, *paths: str | None) -> None:
        """Local directories for state; none, or None, for the default ones."""
        self._paths = tuple(path for path in paths if path is not None)

    def get_db_storage_paths(self) -> list[str]:
        """The local directories set."""
        return list(self._paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Whether checkpoints of changes only were asked for; they are made in any case."""
        return bool(self._incremental)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """A profile of RocksDB."""
        self._predefined_options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """The profile set."""
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        """The Java class that makes RocksDB's options."""
        self._options_factory = options_factory_class_name

    def get_options(self) -> str | None:
        """The Java class set."""
        return self._options_factory

    def get_number_of_transfer_threads(self) -> int:
        """How many threads move files."""
        return 4 if self._transfer_threads is None else self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """How many threads move files."""
        self._transfer_threads = number_of_transfering_threads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmbeddedRocksDBStateBackend) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._incremental, self._paths, self._predefined_options))

    def __repr__(self) -> str:
        return f"EmbeddedRocksDBStateBackend(enable_incremental_checkpointing={self._incremental})"
