"""EnvironmentSettings: the settings from which a table environment is created.

Promises: PyFlink's names. The mode is streaming unless batch is set.
Does not know: environments."""

from __future__ import annotations

from millstream import options
from millstream.config.configuration import Configuration
from millstream.sql.catalog.catalog import DEFAULT_CATALOG, DEFAULT_DATABASE


class EnvironmentSettings:
    """The execution mode, the configuration, and the names of the initial catalog and database.

    Example:
        >>> settings = EnvironmentSettings.new_instance().in_batch_mode().build()
        >>> settings.is_streaming_mode()
        False

    """

    class Builder:
        """Build settings step by step."""

        def __init__(self) -> None:
            self._settings = EnvironmentSettings()

        def with_configuration(self, config: Configuration) -> EnvironmentSettings.Builder:
            """Set all options of a configuration.

            Args:
                config: The options.

            """
            self._settings._configuration.add_all(config)
            return self

        def in_batch_mode(self) -> EnvironmentSettings.Builder:
            """Use batch mode: sources are bounded, and a query emits its final rows only."""
            self._settings._configuration.set(options.RUNTIME_MODE, "BATCH")
            return self

        def in_streaming_mode(self) -> EnvironmentSettings.Builder:
            """Use streaming mode, the default: a query emits changes while its input arrives."""
            self._settings._configuration.set(options.RUNTIME_MODE, "STREAMING")
            return self

        def with_built_in_catalog_name(self, built_in_catalog_name: str) -> EnvironmentSettings.Builder:
            """Set the name of the initial catalog; the default is `default_catalog`.

            Args:
                built_in_catalog_name: The name of the catalog.

            """
            self._settings._catalog = built_in_catalog_name
            return self

        def with_built_in_database_name(self, built_in_database_name: str) -> EnvironmentSettings.Builder:
            """Set the name of the initial database; the default is `default_database`.

            Args:
                built_in_database_name: The name of the database.

            """
            self._settings._database = built_in_database_name
            return self

        def build(self) -> EnvironmentSettings:
            """Return the settings."""
            return self._settings

    def __init__(self) -> None:
        self._configuration = Configuration()
        self._catalog, self._database = DEFAULT_CATALOG, DEFAULT_DATABASE

    def get_built_in_catalog_name(self) -> str:
        """Return the name of the initial catalog."""
        return self._catalog

    def get_built_in_database_name(self) -> str:
        """Return the name of the initial database."""
        return self._database

    def is_streaming_mode(self) -> bool:
        """Return whether the mode is streaming."""
        return str(self._configuration.get(options.RUNTIME_MODE)).upper() != "BATCH"

    def get_configuration(self) -> Configuration:
        """Return the configuration."""
        return self._configuration

    @staticmethod
    def new_instance() -> EnvironmentSettings.Builder:
        """Return a builder."""
        return EnvironmentSettings.Builder()

    @staticmethod
    def in_streaming_mode() -> EnvironmentSettings:
        """Return default settings for streaming mode."""
        return EnvironmentSettings.new_instance().in_streaming_mode().build()

    @staticmethod
    def in_batch_mode() -> EnvironmentSettings:
        """Return default settings for batch mode."""
        return EnvironmentSettings.new_instance().in_batch_mode().build()
