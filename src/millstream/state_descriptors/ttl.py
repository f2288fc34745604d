"""Time to live of state: when a value expires, who may still see it, how it is cleaned up.

Promises: a `StateTtlConfig` is immutable, comparable and picklable; its defaults are Flink's.
Does not know: how expiry is applied. Cleaning up is the backend's choice here (expired values are dropped on
read and when state is compacted), so the strategies are kept and shown but choose nothing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from millstream.errors import UserError
from millstream.times import Duration, Time, millis


class InvalidTimeToLive(UserError, ValueError):
    """A time to live that is not positive."""

    def __init__(self, millis: int) -> None:
        self.millis = millis
        super().__init__(f"a time to live must be positive, not {millis} ms")


class UpdateType(Enum):
    """Which access starts the time anew."""

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class StateVisibility(Enum):
    """Whether an expired value that is still there may be returned."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class TtlTimeCharacteristic(Enum):
    """Which clock values age by."""

    ProcessingTime = 0


class Strategies(Enum):
    """The ways to clean up."""

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class _Value:
    """Equal by content; what the nested configuration classes have in common."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *(str(value) for value in vars(self).values())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name.lstrip('_')}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class CleanupStrategy(_Value):
    """Base of the strategies."""


class EmptyCleanupStrategy(CleanupStrategy):
    """A strategy without parameters."""


class IncrementalCleanupStrategy(CleanupStrategy):
    """Look at some entries with each access."""

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        self._cleanup_size = cleanup_size
        self._run_cleanup_for_every_record = run_cleanup_for_every_record

    def get_cleanup_size(self) -> int:
        """How many entries to look at."""
        return self._cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        """Whether each record counts as an access."""
        return self._run_cleanup_for_every_record


class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
    """Drop expired entries while the disk backend compacts."""

    def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None) -> None:
        self._query_time_after_num_entries = query_time_after_num_entries
        self._periodic_compaction_time = periodic_compaction_time or Duration.of_days(30)

    def get_query_time_after_num_entries(self) -> int:
        """After how many entries the clock is read again."""
        return self._query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        """After how long a file is compacted at the latest."""
        return self._periodic_compaction_time


class CleanupStrategies(_Value):
    """The strategies chosen, and whether the default ones run in the background."""

    Strategies: TypeAlias = Strategies
    CleanupStrategy: TypeAlias = CleanupStrategy
    EmptyCleanupStrategy: TypeAlias = EmptyCleanupStrategy
    IncrementalCleanupStrategy: TypeAlias = IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy: TypeAlias = RocksdbCompactFilterCleanupStrategy
    EMPTY_STRATEGY = EmptyCleanupStrategy()

    def __init__(self, strategies: Mapping[Strategies, CleanupStrategy], is_cleanup_in_background: bool) -> None:
        self._strategies = dict(strategies)
        self._is_cleanup_in_background = is_cleanup_in_background

    def is_cleanup_in_background(self) -> bool:
        """Whether the backend cleans up without being told how."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Whether a full snapshot leaves out what has expired."""
        return Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """The one chosen, or the default where cleanup runs in the background."""
        default = IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None
        chosen = self._strategies.get(Strategies.INCREMENTAL_CLEANUP, default)
        return chosen if isinstance(chosen, IncrementalCleanupStrategy) else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
        """The one chosen, or the default where cleanup runs in the background."""
        default = RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None
        chosen = self._strategies.get(Strategies.ROCKSDB_COMPACTION_FILTER, default)
        return chosen if isinstance(chosen, RocksdbCompactFilterCleanupStrategy) else None


class StateTtlConfig(_Value):
    """When values expire. Made by `StateTtlConfig.new_builder(ttl)`; the time may be a `Time` or a `Duration`."""

    UpdateType: TypeAlias = UpdateType
    StateVisibility: TypeAlias = StateVisibility
    TtlTimeCharacteristic: TypeAlias = TtlTimeCharacteristic
    CleanupStrategies: TypeAlias = CleanupStrategies

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Time | Duration,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        lifetime = millis(ttl)
        if lifetime <= 0 and update_type is not UpdateType.Disabled:
            raise InvalidTimeToLive(lifetime)
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = Time.milliseconds(lifetime)
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Time | Duration) -> StateTtlConfig.Builder:
        """Start from the defaults: the time starts anew with each write, and what has expired is never returned."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Which access starts the time anew."""
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Whether an expired value may be returned."""
        return self._state_visibility

    def get_ttl(self) -> Time:
        """How long a value lives."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Which clock values age by."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether values expire at all."""
        return self._update_type is not UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """How expired values are cleaned up."""
        return self._cleanup_strategies

    class Builder:
        """Collects the parts of a `StateTtlConfig`."""

        def __init__(self, ttl: Time | Duration) -> None:
            self._ttl = ttl
            self._update_type = UpdateType.OnCreateAndWrite
            self._state_visibility = StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[Strategies, CleanupStrategy] = {}

        def set_update_type(self, update_type: UpdateType) -> StateTtlConfig.Builder:
            """Which access starts the time anew."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Each write starts the time anew."""
            return self.set_update_type(UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Each read and write starts the time anew."""
            return self.set_update_type(UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateVisibility) -> StateTtlConfig.Builder:
            """Whether an expired value may be returned."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """An expired value may be returned while it is there."""
            return self.set_state_visibility(StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """An expired value is never returned."""
            return self.set_state_visibility(StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(self, ttl_time_characteristic: TtlTimeCharacteristic) -> StateTtlConfig.Builder:
            """Which clock values age by."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Values age by processing time."""
            return self.set_ttl_time_characteristic(TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """A full snapshot leaves out what has expired."""
            self._strategies[Strategies.FULL_STATE_SCAN_SNAPSHOT] = CleanupStrategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Look at some entries with each access."""
            self._strategies[Strategies.INCREMENTAL_CLEANUP] = IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
        ) -> StateTtlConfig.Builder:
            """Drop expired entries while the disk backend compacts."""
            self._strategies[Strategies.ROCKSDB_COMPACTION_FILTER] = RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """No default strategy runs."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Time | Duration) -> StateTtlConfig.Builder:
            """How long a value lives."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """The configuration."""
            strategies = CleanupStrategies(self._strategies, self._is_cleanup_in_background)
            return StateTtlConfig(
                self._update_type, self._state_visibility, self._ttl_time_characteristic, self._ttl, strategies
            )
