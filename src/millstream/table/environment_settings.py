"""Settings of a table environment.

Promises: PyFlink's names; streaming unless batch is asked for.
Does not know: environments."""

from __future__ import annotations

from millstream import options
from millstream.config.configuration import Configuration
from millstream.sql.catalog.catalog import DEFAULT_CATALOG, DEFAULT_DATABASE


class EnvironmentSettings:
    """Mode, configuration, and the names of the first catalog and database."""

    class Builder:
        """Makes settings step by step."""

        def __init__(self) -> None:
            self._settings = EnvironmentSettings()

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Take options over."""
            self._settings._configuration.add_all(config)
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """Bounded input, final results."""
            self._settings._configuration.set(options.RUNTIME_MODE, "BATCH")
            return self

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Results are kept right while input comes."""
            self._settings._configuration.set(options.RUNTIME_MODE, "STREAMING")
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            """The name of the first catalog."""
            self._settings._catalog = built_in_catalog_name
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            """The name of the first database."""
            self._settings._database = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            """The settings."""
            return self._settings

    def __init__(self) -> None:
        self._configuration = Configuration()
        self._catalog, self._database = DEFAULT_CATALOG, DEFAULT_DATABASE

    def get_built_in_catalog_name(self) -> str:
        """The name of the first catalog."""
        return self._catalog

    def get_built_in_database_name(self) -> str:
        """The name of the first database."""
        return self._database

    def is_streaming_mode(self) -> bool:
        """Whether it is not batch."""
        return str(self._configuration.get(options.RUNTIME_MODE)).upper() != "BATCH"

    def get_configuration(self) -> Configuration:
        """The options."""
        return self._configuration

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """A builder."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Settings for streaming."""
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Settings for batch."""
        return EnvironmentSettings.new_instance().in_batch_mode().build()
