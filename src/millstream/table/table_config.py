"""TableConfig: the options of a table environment.

Promises: PyFlink's names; a view on the configuration of the environment.
Does not know: what the options do."""

from __future__ import annotations

import datetime

from millstream import options
from millstream.config.configuration import Configuration
from millstream.errors import InvalidArgument
from millstream.sql.functions.text import find_time_zone
from millstream.sql.types.durations import parse_duration_millis
from millstream.sql_options import LOCAL_TIME_ZONE, MAX_GENERATED_CODE_LENGTH, SQL_DIALECT, STATE_TTL
from millstream.table.option_checks import check_setting
from millstream.table.sql_dialect import SqlDialect
from millstream.times import Duration


class TableConfig:
    """Read and set the options of a table environment; changes apply to statements that are executed afterwards.

    Example:
        >>> config = TableConfig.get_default()
        >>> config.set("table.exec.state.ttl", "1 h").get("table.exec.state.ttl", "0 ms")
        '1 h'

    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    @staticmethod
    def get_default() -> TableConfig:
        """Return a new configuration with default values."""
        return TableConfig()

    def get(self, key: str, default_value: str) -> str:
        """Return the value of an option.

        Args:
            key: The key of the option.
            default_value: The value if the option is not set.

        """
        return self._configuration.get_string(key, default_value)

    def set(self, key: str, value: str) -> TableConfig:
        """Set an option.

        Args:
            key: The key of the option.
            value: Its value as text.

        Returns:
            This configuration.

        Raises:
            UserError: If there is no such option, or it cannot have the value.

        """
        check_setting(key, value)
        self._configuration.set_string(key, value)
        return self

    def to_map(self) -> dict[str, str]:
        """Return all options that are set."""
        return self._configuration.to_dict()

    def get_configuration(self) -> Configuration:
        """Return the underlying configuration, which this object shares."""
        return self._configuration

    def add_configuration(self, configuration: Configuration) -> None:
        """Set all options that another configuration sets.

        Args:
            configuration: The options.

        """
        self._configuration.add_all(configuration)

    def get_local_timezone(self) -> str:
        """Return the time zone of the session, `table.local-time-zone`."""
        zone = self._configuration.get_string(LOCAL_TIME_ZONE.key, LOCAL_TIME_ZONE.default)
        return "UTC" if zone == "default" else zone

    def set_local_timezone(self, timezone_id: str) -> None:
        """Set the time zone of the session.

        Args:
            timezone_id: A name such as `Europe/Berlin`, or an offset such as `GMT+03:00`.

        Raises:
            InvalidArgument: If there is no such time zone.

        """
        try:
            find_time_zone(timezone_id)
        except ValueError as error:
            raise InvalidArgument(str(error), hint="use a name such as Europe/Berlin, or GMT+03:00") from None
        self._configuration.set_string(LOCAL_TIME_ZONE.key, timezone_id)

    def get_idle_state_retention(self) -> datetime.timedelta:
        """Return how long idle state is kept, `table.exec.state.ttl`; 0 means without limit."""
        millis = parse_duration_millis(self._configuration.get_string(STATE_TTL.key, "0 ms"))
        return datetime.timedelta(milliseconds=millis)

    def set_idle_state_retention(self, duration: datetime.timedelta | Duration) -> None:
        """Set how long state of keys that get no rows is kept, `table.exec.state.ttl`.

        Args:
            duration: The minimum time; 0 means without limit.

        """
        if isinstance(duration, datetime.timedelta):
            duration = Duration.of_millis(duration // datetime.timedelta(milliseconds=1))
        self._configuration.set_string(STATE_TTL.key, f"{duration.to_milliseconds()} ms")

    def get_max_generated_code_length(self) -> int:
        """Return an option that has no effect: millstream generates no code."""
        return self._configuration.get_integer(MAX_GENERATED_CODE_LENGTH.key, MAX_GENERATED_CODE_LENGTH.default)

    def set_max_generated_code_length(self, max_generated_code_length: int) -> None:
        """Set an option that has no effect: millstream generates no code.

        Args:
            max_generated_code_length: The number of characters.

        """
        self._configuration.set_integer(MAX_GENERATED_CODE_LENGTH.key, max_generated_code_length)

    def get_sql_dialect(self) -> SqlDialect:
        """Return the SQL dialect."""
        return SqlDialect[self._configuration.get_string(SQL_DIALECT.key, SQL_DIALECT.default).upper()]

    def set_sql_dialect(self, sql_dialect: SqlDialect) -> None:
        """Set the SQL dialect; statements are parsed in Flink's own dialect, which is the default.

        Args:
            sql_dialect: The dialect.

        """
        self._configuration.set_string(SQL_DIALECT.key, sql_dialect.name.lower())

    def get_python_executable(self) -> str | None:
        """Return the Python interpreter of the tasks, `python.executable`."""
        return self._configuration.get(options.PYTHON_EXECUTABLE)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the Python interpreter of the tasks, `python.executable`.

        Args:
            python_exec: A path that exists on the machines where tasks run.

        """
        self._configuration.set(options.PYTHON_EXECUTABLE, python_exec)
