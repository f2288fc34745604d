"""The options of a table environment.

Promises: a view on the environment's configuration, under PyFlink's names.
Does not know: what options mean."""

from __future__ import annotations

from millstream import options
from millstream.config.configuration import Configuration
from millstream.sql.types.durations import duration_millis
from millstream.sql_options import LOCAL_TIME_ZONE, MAX_GENERATED_CODE_LENGTH, SQL_DIALECT, STATE_TTL
from millstream.table.sql_dialect import SqlDialect
from millstream.times import Duration


class TableConfig:
    """Options, read and set."""

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    @staticmethod
    def get_default() -> TableConfig:
        """Options nobody has changed."""
        return TableConfig()

    def get(self, key: str, default_value: str) -> str:
        """An option, or the default."""
        return self._configuration.get_string(key, default_value)

    def set(self, key: str, value: str) -> TableConfig:
        """Set an option."""
        self._configuration.set_string(key, value)
        return self

    def to_map(self) -> dict[str, str]:
        """All options that are set."""
        return self._configuration.to_dict()

    def get_configuration(self) -> Configuration:
        """The configuration behind this view."""
        return self._configuration

    def add_configuration(self, configuration: Configuration) -> None:
        """Take options over."""
        self._configuration.add_all(configuration)

    def get_local_timezone(self) -> str:
        """The session's time zone."""
        zone = self._configuration.get_string(LOCAL_TIME_ZONE.key, LOCAL_TIME_ZONE.default)
        return "UTC" if zone == "default" else zone

    def set_local_timezone(self, timezone_id: str) -> None:
        """Set the session's time zone."""
        self._configuration.set_string(LOCAL_TIME_ZONE.key, timezone_id)

    def get_idle_state_retention(self) -> Duration:
        """How long state that nothing touches is kept; 0 for ever."""
        return Duration.of_millis(duration_millis(self._configuration.get_string(STATE_TTL.key, "0 ms")))

    def set_idle_state_retention(self, duration: Duration) -> None:
        """Set how long state that nothing touches is kept."""
        self._configuration.set_string(STATE_TTL.key, f"{duration.to_milliseconds()} ms")

    def get_max_generated_code_length(self) -> int:
        """Accepted for PyFlink programs: no code is generated."""
        return self._configuration.get_integer(MAX_GENERATED_CODE_LENGTH.key, MAX_GENERATED_CODE_LENGTH.default)

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """Accepted for PyFlink programs: no code is generated."""
        self._configuration.set_integer(MAX_GENERATED_CODE_LENGTH.key, max_generated_code_length)

    def get_sql_dialect(self) -> SqlDialect:
        """The dialect."""
        return SqlDialect[self._configuration.get_string(SQL_DIALECT.key, SQL_DIALECT.default).upper()]

    def set_sql_dialect(self, sql_dialect: SqlDialect) -> None:
        """Set the dialect."""
        self._configuration.set_string(SQL_DIALECT.key, sql_dialect.name.lower())

    def get_python_executable(self) -> str | None:
        """The Python that tasks run on."""
        return self._configuration.get(options.PYTHON_EXECUTABLE)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python that tasks run on."""
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)
