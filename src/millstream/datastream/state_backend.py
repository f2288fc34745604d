"""State backends: where keyed state is stored while a job runs.

Promises: `apply_to` writes the choice to a configuration; the rest of the system reads only the configuration.
Does not know: how state is stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from millstream import options
from millstream.config.configuration import Configuration
from millstream.errors import UserError

__all__ = ["EmbeddedRocksDBStateBackend", "HashMapStateBackend", "PredefinedOptions", "StateBackend"]

# Flink's options of RocksDB: accepted, and listed as ignored, because the disk backend here is LMDB
ROCKSDB_DIRS = "state.backend.rocksdb.localdir"
ROCKSDB_TRANSFER_THREADS = "state.backend.rocksdb.checkpoint.transfer.thread.num"
ROCKSDB_PREDEFINED = "state.backend.rocksdb.predefined-options"
ROCKSDB_FACTORY = "state.backend.rocksdb.options-factory"


class InvalidStateBackend(UserError, TypeError):
    """A parameter of a state backend has the wrong type."""

    def __init__(self, parameter: str, value: object, expected: str) -> None:
        self.parameter, self.value, self.expected = parameter, value, expected
        super().__init__(f"{parameter} of a state backend must be {expected}, not {value!r}")


class StateBackend(ABC):
    """Where keyed state is stored while a job runs.

    Example:
        >>> from millstream.common import Configuration
        >>> configuration = Configuration()
        >>> EmbeddedRocksDBStateBackend().apply_to(configuration)
        >>> configuration.to_dict()
        {'state.backend.type': 'rocksdb'}

    """

    @abstractmethod
    def apply_to(self, configuration: Configuration) -> None:
        """Set this backend in a configuration.

        Args:
            configuration: The configuration of the environment.

        """


@dataclass(frozen=True)
class HashMapStateBackend(StateBackend):
    """Keyed state as Python objects in memory.

    Example:
        >>> from millstream.common import Configuration
        >>> configuration = Configuration()
        >>> HashMapStateBackend().apply_to(configuration)
        >>> configuration.to_dict()
        {'state.backend.type': 'hashmap'}

    """

    def apply_to(self, configuration: Configuration) -> None:
        """Set this backend in a configuration."""
        configuration.set(options.STATE_BACKEND, "hashmap")


class PredefinedOptions(Enum):
    """RocksDB's profiles for types of disks; accepted without effect.

    Example:
        >>> PredefinedOptions.FLASH_SSD_OPTIMIZED.name
        'FLASH_SSD_OPTIMIZED'

    """

    DEFAULT = 0
    SPINNING_DISK_OPTIMIZED = 1
    SPINNING_DISK_OPTIMIZED_HIGH_MEM = 2
    FLASH_SSD_OPTIMIZED = 3


class EmbeddedRocksDBStateBackend(StateBackend):
    """Keyed state on disk, which may be larger than memory. It is stored in LMDB, so options of RocksDB have no effect.

    Args:
        enable_incremental_checkpointing: Accepted without effect: checkpoints are always incremental.

    Example:
        >>> backend = EmbeddedRocksDBStateBackend()
        >>> backend.set_db_storage_paths("/disk1/state", "/disk2/state")

    """

    def __init__(self, enable_incremental_checkpointing: bool | None = None) -> None:
        if enable_incremental_checkpointing not in (None, True, False):
            value, parameter = enable_incremental_checkpointing, "enable_incremental_checkpointing"
            raise InvalidStateBackend(parameter, value, "True, False or None")
        self._incremental = enable_incremental_checkpointing
        self._paths: tuple[str, ...] = ()
        self._predefined_options = PredefinedOptions.DEFAULT
        self._options_factory: str | None = None
        self._transfer_threads: int | None = None

    def apply_to(self, configuration: Configuration) -> None:
        """Set this backend in a configuration."""
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
        """Set the local directories of state; without arguments, or with None, the default ones.

        Of a URI only the path counts, as in Flink: `file:///disk1/state` is `/disk1/state`.

        Args:
            *paths: The directories.

        """
        self._paths = tuple(_local_path(path) for path in paths if path is not None)

    def get_db_storage_paths(self) -> list[str]:
        """Return the local directories that were set."""
        return list(self._paths)

    def is_incremental_checkpoints_enabled(self) -> bool:
        """Return whether incremental checkpoints were enabled; checkpoints are always incremental."""
        return bool(self._incremental)

    def set_predefined_options(self, options: PredefinedOptions) -> None:
        """Set a profile of RocksDB, without effect.

        Args:
            options: The profile.

        """
        self._predefined_options = options

    def get_predefined_options(self) -> PredefinedOptions:
        """Return the profile that was set."""
        return self._predefined_options

    def set_options(self, options_factory_class_name: str) -> None:
        """Set the Java class that creates RocksDB's options, without effect.

        Args:
            options_factory_class_name: The name of the class.

        """
        self._options_factory = options_factory_class_name

    def get_options(self) -> str | None:
        """Return the Java class that was set."""
        return self._options_factory

    def get_number_of_transfer_threads(self) -> int:
        """Return the number of threads for file transfers that was set."""
        return 4 if self._transfer_threads is None else self._transfer_threads

    def set_number_of_transfer_threads(self, number_of_transfering_threads: int) -> None:
        """Set the number of threads for file transfers, without effect.

        Args:
            number_of_transfering_threads: The number.

        """
        self._transfer_threads = number_of_transfering_threads

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmbeddedRocksDBStateBackend) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((self._incremental, self._paths, self._predefined_options))

    def __repr__(self) -> str:
        return f"EmbeddedRocksDBStateBackend(enable_incremental_checkpointing={self._incremental})"


def _local_path(path: str) -> str:
    plain_path = urlsplit(path).path if path.startswith("file:") else path
    return plain_path.rstrip("/") or plain_path
