"""Options of connection, execution and exactly-once output, under the names of Flink's JDBC connector.

Promises: values; a URL of JDBC or libpq is converted for psycopg, and that of another database is refused. A
password is never part of a text form.
Does not know: connections."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from millstream.errors import UserError

_log = logging.getLogger("millstream.jdbc")

_DRIVERS = (None, "", "org.postgresql.Driver")
_OTHER_DRIVERS = {
    "mysql": (None, "", "com.mysql.cj.jdbc.Driver", "com.mysql.jdbc.Driver", "org.mariadb.jdbc.Driver"),
    "sqlite": (None, "", "org.sqlite.JDBC"),
}
# parameters of the JDBC driver, and their names in libpq
_RENAMED = {
    "ApplicationName": "application_name",
    "connectTimeout": "connect_timeout",
    "loginTimeout": "connect_timeout",
    "sslrootcert": "sslrootcert",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "targetServerType": "target_session_attrs",
    "user": "user",
    "password": "password",
    "options": "options",
}


class InvalidJdbcOption(UserError, ValueError):
    """An invalid option of a JDBC connector."""


@dataclass(frozen=True)
class JdbcConnectionOptions:
    """The database, the user and the password.

    Example:
        >>> builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url("jdbc:postgresql://localhost/shop")
        >>> options = builder.with_user_name("reader").with_password("secret").build()

    """

    url: str
    driver_name: str | None = None
    user_name: str | None = None
    password: str | None = None

    def __post_init__(self) -> None:
        if self.database() == "postgresql":
            self.conninfo()
        else:
            self.database_url()

    def __repr__(self) -> str:
        return f"JdbcConnectionOptions({_without_password(self.url)})"

    def get_db_url(self) -> str:
        """Return the URL."""
        return self.url

    def get_driver_name(self) -> str | None:
        """Return the name of the JDBC driver, which is not used."""
        return self.driver_name

    def get_user_name(self) -> str | None:
        """Return the user name."""
        return self.user_name

    def get_password(self) -> str | None:
        """Return the password."""
        return self.password

    def database(self) -> str:
        """Return the type of the database: `mysql`, `sqlite`, or `postgresql` for any other."""
        scheme = self.url.removeprefix("jdbc:").partition(":")[0]
        return {"mysql": "mysql", "mariadb": "mysql", "sqlite": "sqlite"}.get(scheme, "postgresql")

    def database_url(self) -> str:
        """Return the address of a MySQL or SQLite database: `mysql://...`, or the path of a file."""
        text = self.url.removeprefix("jdbc:")
        if self.driver_name not in _OTHER_DRIVERS[self.database()]:
            message = f"the JDBC driver {self.driver_name} is not one for {_without_password(self.url)}"
            raise InvalidJdbcOption(message, hint="omit it: no jar is needed")
        if self.database() == "sqlite":
            path = text.removeprefix("sqlite:").removeprefix("//")
            if not path or path.startswith((":", "?")):
                message = f"{self.url} is not the URL of a file"
                raise InvalidJdbcOption(message, hint="write jdbc:sqlite:/path/of/the/file.db; all workers must see it")
            return path
        parts = urlsplit(text)
        settings = dict(parse_qsl(parts.query, keep_blank_values=True))
        user = self.user_name or settings.get("user") or unquote(parts.username or "")
        secret = self.password or settings.get("password") or unquote(parts.password or "")
        login = quote(user, safe="") + (f":{quote(secret, safe='')}" if secret else "")
        encrypted = settings.get("useSSL") == "true" or settings.get("sslMode", "").upper() in ("REQUIRED", "TRUST")
        host = parts.netloc.rpartition("@")[2]
        return f"mysql://{login}{'@' if login else ''}{host}{parts.path}{'?ssl=true' if encrypted else ''}"

    def conninfo(self) -> str:
        """Return the connection string for libpq; raise for another database than PostgreSQL."""
        if self.driver_name not in _DRIVERS:
            message = f"the JDBC driver {self.driver_name} is not supported"
            raise InvalidJdbcOption(
                message, hint="omit it: PostgreSQL, MySQL, MariaDB and SQLite are supported, and need no jar"
            )
        text = self.url.removeprefix("jdbc:")
        parts = urlsplit(text)
        if parts.scheme not in ("postgresql", "postgres"):
            message = f"{_without_password(self.url)} is not the URL of a PostgreSQL database"
            hint = (
                "write jdbc:postgresql://host:5432/database or postgresql://host:5432/database; MySQL and SQLite are "
            )
            hint += "read by the table connector 'jdbc', and written to by JdbcSink too"
            raise InvalidJdbcOption(message, hint=hint)
        if text == self.url and self.user_name is None and self.password is None:
            return text
        url_parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        settings = _to_libpq(url_parameters) if text != self.url else url_parameters
        user = self.user_name or settings.pop("user", None) or (unquote(parts.username) if parts.username else None)
        secret = (
            self.password or settings.pop("password", None) or (unquote(parts.password) if parts.password else None)
        )
        settings = {name: value for name, value in settings.items() if name not in ("user", "password")}
        login = quote(user, safe="") if user else ""
        login += f":{quote(secret, safe='')}" if secret else ""
        host = parts.netloc.rpartition("@")[2]
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in settings.items())
        return f"postgresql://{login}{'@' if login else ''}{host}{parts.path}{'?' if query else ''}{query}"

    @staticmethod
    def builder() -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
        """Return a new builder."""
        return JdbcConnectionOptions.JdbcConnectionOptionsBuilder()

    class JdbcConnectionOptionsBuilder:
        """Builds JdbcConnectionOptions."""

        def __init__(self) -> None:
            self._url: str | None = None
            self._driver: str | None = None
            self._user: str | None = None
            self._password: str | None = None

        def with_url(self, url: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the URL of the database.

            Args:
                url: The URL, such as `jdbc:postgresql://localhost:5432/shop`.

            """
            self._url = url
            return self

        def with_driver_name(self, driver_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the JDBC driver; the name of PostgreSQL's is accepted and not needed.

            Args:
                driver_name: The name of the driver's class.

            """
            self._driver = driver_name
            return self

        def with_user_name(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the user name.

            Args:
                user_name: The user name.

            """
            self._user = user_name
            return self

        def with_username(self, user_name: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the user name.

            Args:
                user_name: The user name.

            """
            return self.with_user_name(user_name)

        def with_password(self, password: str) -> JdbcConnectionOptions.JdbcConnectionOptionsBuilder:
            """Set the password.

            Args:
                password: The password.

            """
            self._password = password
            return self

        def build(self) -> JdbcConnectionOptions:
            """Build the options."""
            if not self._url:
                message = "connection options without a URL"
                raise InvalidJdbcOption(message, hint="call with_url('jdbc:postgresql://host:5432/database')")
            return JdbcConnectionOptions(self._url, self._driver, self._user, self._password)


@dataclass(frozen=True)
class JdbcExecutionOptions:
    """The size of batches, and the number of retries.

    Example:
        >>> options = JdbcExecutionOptions.builder().with_batch_size(1_000).with_max_retries(3).build()

    """

    batch_interval_ms: int = 0
    batch_size: int = 5000
    max_retries: int = 3

    def __post_init__(self) -> None:
        for name, least in (("batch_interval_ms", 0), ("batch_size", 0), ("max_retries", 0)):
            if getattr(self, name) < least:
                message = f"{name} is {getattr(self, name)}, it must be at least {least}"
                raise InvalidJdbcOption(message)

    def get_batch_interval_ms(self) -> int:
        """Return the interval in milliseconds after which an incomplete batch is written; 0 for never."""
        return self.batch_interval_ms

    def get_batch_size(self) -> int:
        """Return the number of rows of a batch; 0 for all rows of an epoch."""
        return self.batch_size

    def get_max_retries(self) -> int:
        """Return the number of retries of a failed write."""
        return self.max_retries

    @staticmethod
    def defaults() -> JdbcExecutionOptions:
        """Return Flink's defaults."""
        return JdbcExecutionOptions()

    @staticmethod
    def builder() -> JdbcExecutionOptions.Builder:
        """Return a new builder."""
        return JdbcExecutionOptions.Builder()

    class Builder:
        """Builds JdbcExecutionOptions."""

        def __init__(self) -> None:
            self._options = JdbcExecutionOptions()

        def with_batch_size(self, size: int) -> JdbcExecutionOptions.Builder:
            """Set the number of rows of a batch.

            Args:
                size: The number of rows; 0 for all rows of an epoch.

            """
            self._options = replace(self._options, batch_size=size)
            return self

        def with_batch_interval_ms(self, interval_ms: int) -> JdbcExecutionOptions.Builder:
            """Set the interval in milliseconds after which an incomplete batch is written.

            Args:
                interval_ms: The interval; 0 for never.

            """
            self._options = replace(self._options, batch_interval_ms=interval_ms)
            return self

        def with_max_retries(self, max_retries: int) -> JdbcExecutionOptions.Builder:
            """Set the number of retries of a failed write.

            Args:
                max_retries: The number of retries, at least 0.

            """
            self._options = replace(self._options, max_retries=max_retries)
            return self

        def build(self) -> JdbcExecutionOptions:
            """Build the options."""
            return self._options


@dataclass(frozen=True)
class JdbcExactlyOnceOptions:
    """Options of exactly-once output.

    `timeout_sec`: how long a write waits for a row that another transaction has locked.

    Example:
        >>> JdbcExactlyOnceOptions.defaults().max_commit_attempts
        3

    """

    max_commit_attempts: int = 3
    timeout_sec: int = 10
    recovered_and_rollback: bool = True

    def __post_init__(self) -> None:
        for name in ("max_commit_attempts", "timeout_sec"):
            if getattr(self, name) < 1:
                message = f"{name} is {getattr(self, name)}, it must be at least 1"
                raise InvalidJdbcOption(message)

    @staticmethod
    def defaults() -> JdbcExactlyOnceOptions:
        """Return the defaults."""
        return JdbcExactlyOnceOptions()

    @staticmethod
    def builder() -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
        """Return a new builder."""
        return JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder()

    class JDBCExactlyOnceOptionsBuilder:
        """Builds JdbcExactlyOnceOptions.

        Example:
            >>> JdbcExactlyOnceOptions.builder().with_max_commit_attempts(5).with_timeout_sec(30).build()
            JdbcExactlyOnceOptions(max_commit_attempts=5, timeout_sec=30, recovered_and_rollback=True)

        """

        def __init__(self) -> None:
            self._options = JdbcExactlyOnceOptions()

        def with_max_commit_attempts(self, attempts: int) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """Set how often a commit is attempted before the job fails and recovers.

            Args:
                attempts: The number of attempts, at least 1.

            """
            self._options = replace(self._options, max_commit_attempts=attempts)
            return self

        def with_timeout_sec(self, seconds: int) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """Set how long a write waits for a row that another transaction has locked.

            Args:
                seconds: The number of seconds, at least 1.

            """
            self._options = replace(self._options, timeout_sec=seconds)
            return self

        def with_recovered_and_rollback(self, rollback: bool) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """Set whether prepared transactions of dead attempts are rolled back after a recovery.

            Args:
                rollback: Whether they are rolled back; True by default.

            """
            self._options = replace(self._options, recovered_and_rollback=rollback)
            return self

        def with_transaction_per_connection(self, _: bool) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """Accept the setting without effect: a connection has one transaction.

            Args:
                _: Any value; it has no effect but a warning.

            """
            _log.warning("with_transaction_per_connection has no effect: PostgreSQL has one transaction a connection")
            return self

        def with_allow_out_of_order_commits(self, _: bool) -> JdbcExactlyOnceOptions.JDBCExactlyOnceOptionsBuilder:
            """Accept the setting without effect: transactions are committed in order.

            Args:
                _: Any value; it has no effect but a warning.

            """
            _log.warning("with_allow_out_of_order_commits has no effect: transactions are committed in order")
            return self

        def build(self) -> JdbcExactlyOnceOptions:
            """Build the options."""
            return self._options


def _to_libpq(jdbc_parameters: dict[str, str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for name, value in jdbc_parameters.items():
        if name == "tcpKeepAlive":
            settings["keepalives"] = "0" if value == "false" else "1"
        elif name == "socketTimeout":
            settings["tcp_user_timeout"] = f"{value}000"  # seconds in JDBC, milliseconds in libpq
        elif name in _RENAMED:
            settings[_RENAMED[name]] = value
        elif name == "currentSchema":
            settings["options"] = f"-csearch_path={value}"
        elif name == "ssl":
            settings.setdefault("sslmode", "require" if value in ("", "true") else "prefer")
        else:
            _log.warning("the parameter %s of a JDBC URL is not supported and has no effect", name)
    return settings


def _without_password(url: str) -> str:
    return url.partition("?")[0].rpartition("@")[2]
