"""Common settings of the builders of CDC sources: the server, the user, the tables, and how they are read.

Does not know: how a connection is opened; where a job begins to read."""

from __future__ import annotations

from typing import ClassVar, Self

from millstream.connectors.jdbc.cdc.changes import ChangeDeserializer
from millstream.connectors.jdbc.options import InvalidJdbcOption


class ChangeSourceBuilder:
    """Common settings of all CDC sources, under the names of Flink CDC."""

    default_port: ClassVar[int]

    def __init__(self) -> None:
        self._hostname, self._port = "localhost", self.default_port
        self._user, self._password = "", ""
        self._tables: tuple[str, ...] = ()
        self._deserializer: ChangeDeserializer | None = None
        self._split_size = 8096
        self._ignore_truncate = False

    def hostname(self, hostname: str) -> Self:
        """Set the host name of the server.

        Args:
            hostname: The host name; `localhost` by default.

        """
        self._hostname = hostname
        return self

    def port(self, port: int) -> Self:
        """Set the port of the server.

        Args:
            port: The port; by default the usual one of the database.

        """
        self._port = port
        return self

    def username(self, username: str) -> Self:
        """Set the user name; the user must be allowed to read the tables and the log of changes.

        Args:
            username: The user name.

        """
        self._user = username
        return self

    def password(self, password: str) -> Self:
        """Set the password.

        Args:
            password: The password.

        """
        self._password = password
        return self

    def table_list(self, *tables: str) -> Self:
        """Set the tables.

        Args:
            *tables: The names of the tables, each with that of its schema or database.

        """
        self._tables = tables
        return self

    def deserializer(self, deserializer: ChangeDeserializer) -> Self:
        """Set the deserializer; the default produces rows with their row kind.

        Args:
            deserializer: Turns changes into records.

        """
        self._deserializer = deserializer
        return self

    def split_size(self, rows: int) -> Self:
        """Set the minimal number of rows that one query of a snapshot reads.

        Args:
            rows: The number of rows; 8096 by default.

        """
        self._split_size = rows
        return self

    def on_truncate(self, reaction: str) -> Self:
        """Set what happens on TRUNCATE: `fail` (the default) or `ignore`.

        Args:
            reaction: `fail` or `ignore`.

        """
        if reaction not in ("fail", "ignore"):
            message = f"on_truncate does not accept {reaction!r}"
            raise InvalidJdbcOption(message, hint="use 'fail' or 'ignore'")
        self._ignore_truncate = reaction == "ignore"
        return self
