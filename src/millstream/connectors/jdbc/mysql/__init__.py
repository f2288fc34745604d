"""MySQL and MariaDB: changes of tables from the binary log, snapshot first, exactly once."""

from millstream.connectors.jdbc.mysql.source import MySqlSource, MySqlSourceBuilder, StartupOptions

__all__ = ["MySqlSource", "MySqlSourceBuilder", "StartupOptions"]
