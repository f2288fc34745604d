"""State time-to-live (TTL): when a value expires, whether an expired value is returned, and how it is cleaned up.

Promises: a `StateTtlConfig` is immutable, comparable and picklable. Its defaults are Flink's.
Does not know: how values expire. The backend removes expired values when they are read and when state is compacted;
cleanup strategies are accepted and returned, but have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeAlias

from millstream.errors import UserError
from millstream.times import Duration, Time, millis


class InvalidTimeToLive(UserError, ValueError):
    """A time-to-live is not positive."""

    def __init__(self, millis: int) -> None:
        self.millis = millis
        super().__init__(f"a time-to-live must be positive, not {millis} ms")


class UpdateType(Enum):
    """Which access to a value restarts its time-to-live.

    Example:
        >>> UpdateType.OnReadAndWrite.name
        'OnReadAndWrite'

    """

    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class StateVisibility(Enum):
    """Whether an expired value is returned if it was not cleaned up yet.

    Example:
        >>> from millstream.common import Time
        >>> StateTtlConfig.new_builder(Time.hours(1)).never_return_expired().build().get_state_visibility()
        <StateVisibility.NeverReturnExpired: 1>

    """

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class TtlTimeCharacteristic(Enum):
    """The time domain of the time-to-live.

    Example:
        >>> from millstream.common import Time
        >>> StateTtlConfig.new_builder(Time.hours(1)).build().get_ttl_time_characteristic()
        <TtlTimeCharacteristic.ProcessingTime: 0>

    """

    ProcessingTime = 0


class Strategies(Enum):
    """The cleanup strategies.

    Example:
        >>> Strategies.INCREMENTAL_CLEANUP.name
        'INCREMENTAL_CLEANUP'

    """

    FULL_STATE_SCAN_SNAPSHOT = 0
    INCREMENTAL_CLEANUP = 1
    ROCKSDB_COMPACTION_FILTER = 2


class _EqualByFields:
    """Compares by all fields."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *(str(value) for value in vars(self).values())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name.lstrip('_')}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class CleanupStrategy(_EqualByFields):
    """The base class of cleanup strategies.

    Example:
        >>> issubclass(IncrementalCleanupStrategy, CleanupStrategy)
        True

    """


class EmptyCleanupStrategy(CleanupStrategy):
    """A cleanup strategy without parameters.

    Example:
        >>> CleanupStrategies.EMPTY_STRATEGY == EmptyCleanupStrategy()
        True

    """


class IncrementalCleanupStrategy(CleanupStrategy):
    """Checks some entries at each access to state.

    Example:
        >>> IncrementalCleanupStrategy(10, True).get_cleanup_size()
        10

    """

    def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
        self._cleanup_size = cleanup_size
        self._run_cleanup_for_every_record = run_cleanup_for_every_record

    def get_cleanup_size(self) -> int:
        """Return the number of entries to check."""
        return self._cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        """Return whether each record counts as an access."""
        return self._run_cleanup_for_every_record


class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
    """Removes expired entries when the disk backend compacts its files.

    Example:
        >>> RocksdbCompactFilterCleanupStrategy(1_000).get_periodic_compaction_time().to_seconds()
        2592000.0

    """

    def __init__(self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None) -> None:
        self._query_time_after_num_entries = query_time_after_num_entries
        self._periodic_compaction_time = periodic_compaction_time or Duration.of_days(30)

    def get_query_time_after_num_entries(self) -> int:
        """Return after how many entries the current time is read again."""
        return self._query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Duration:
        """Return after which time a file is compacted at the latest."""
        return self._periodic_compaction_time


class CleanupStrategies(_EqualByFields):
    """The configured cleanup strategies, and whether the default strategies run in the background.

    Example:
        >>> from millstream.common import Time
        >>> config = StateTtlConfig.new_builder(Time.hours(1)).cleanup_incrementally(10, True).build()
        >>> config.get_cleanup_strategies().get_incremental_cleanup_strategy().get_cleanup_size()
        10

    """

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
        """Return whether the default strategies of the backend run in the background."""
        return self._is_cleanup_in_background

    def in_full_snapshot(self) -> bool:
        """Return whether full snapshots leave out expired values."""
        return Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

    def get_incremental_cleanup_strategy(self) -> IncrementalCleanupStrategy | None:
        """Return the configured incremental strategy, the default one if cleanup runs in the background, or None."""
        default = IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None
        strategy = self._strategies.get(Strategies.INCREMENTAL_CLEANUP, default)
        return strategy if isinstance(strategy, IncrementalCleanupStrategy) else None

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> RocksdbCompactFilterCleanupStrategy | None:
        """Return the configured compaction strategy, the default one if cleanup runs in the background, or None."""
        default = RocksdbCompactFilterCleanupStrategy(1000) if self._is_cleanup_in_background else None
        strategy = self._strategies.get(Strategies.ROCKSDB_COMPACTION_FILTER, default)
        return strategy if isinstance(strategy, RocksdbCompactFilterCleanupStrategy) else None


class StateTtlConfig(_EqualByFields):
    """The time-to-live of state; created with `StateTtlConfig.new_builder`.

    Example:
        >>> from millstream.common import Time
        >>> config = StateTtlConfig.new_builder(Time.hours(1)).update_ttl_on_read_and_write().build()
        >>> config.is_enabled()
        True

    """

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
        """Return a builder with the defaults: a write restarts the time, and expired values are never returned.

        Args:
            ttl: The time-to-live.

        """
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Return which access restarts the time."""
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Return whether expired values can be returned."""
        return self._state_visibility

    def get_ttl(self) -> Time:
        """Return the time-to-live."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Return the time domain."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Return whether values expire."""
        return self._update_type is not UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """Return the cleanup strategies."""
        return self._cleanup_strategies

    class Builder:
        """Builds a `StateTtlConfig`; each method returns the builder."""

        def __init__(self, ttl: Time | Duration) -> None:
            self._ttl = ttl
            self._update_type = UpdateType.OnCreateAndWrite
            self._state_visibility = StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[Strategies, CleanupStrategy] = {}

        def set_update_type(self, update_type: UpdateType) -> StateTtlConfig.Builder:
            """Set which access restarts the time.

            Args:
                update_type: Writes, or reads and writes.

            """
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Restart the time at each write; the default."""
            return self.set_update_type(UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Restart the time at each read and write."""
            return self.set_update_type(UpdateType.OnReadAndWrite)

        def set_state_visibility(self, state_visibility: StateVisibility) -> StateTtlConfig.Builder:
            """Set whether expired values can be returned.

            Args:
                state_visibility: Never, or until they are cleaned up.

            """
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Return expired values as long as they are not cleaned up."""
            return self.set_state_visibility(StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Never return expired values; the default."""
            return self.set_state_visibility(StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(self, ttl_time_characteristic: TtlTimeCharacteristic) -> StateTtlConfig.Builder:
            """Set the time domain.

            Args:
                ttl_time_characteristic: The time domain; processing time is the only one.

            """
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Use processing time; the default and only time domain."""
            return self.set_ttl_time_characteristic(TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Leave expired values out of full snapshots."""
            self._strategies[Strategies.FULL_STATE_SCAN_SNAPSHOT] = CleanupStrategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Check some entries at each access to state.

            Args:
                cleanup_size: The number of entries to check.
                run_cleanup_for_every_record: Whether each record counts as an access.

            """
            self._strategies[Strategies.INCREMENTAL_CLEANUP] = IncrementalCleanupStrategy(
                cleanup_size, run_cleanup_for_every_record
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Duration | None = None
        ) -> StateTtlConfig.Builder:
            """Remove expired entries when the disk backend compacts its files.

            Args:
                query_time_after_num_entries: After how many entries the current time is read again.
                periodic_compaction_time: After which time a file is compacted at the latest; 30 days by default.

            """
            self._strategies[Strategies.ROCKSDB_COMPACTION_FILTER] = RocksdbCompactFilterCleanupStrategy(
                query_time_after_num_entries, periodic_compaction_time
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Disable the default strategies."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Time | Duration) -> StateTtlConfig.Builder:
            """Set the time-to-live.

            Args:
                ttl: The time; it must be positive.

            """
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """Return the configuration."""
            strategies = CleanupStrategies(self._strategies, self._is_cleanup_in_background)
            return StateTtlConfig(
                self._update_type, self._state_visibility, self._ttl_time_characteristic, self._ttl, strategies
            )
