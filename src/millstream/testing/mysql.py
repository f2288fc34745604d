"""A real MariaDB server for tests, on a free loopback port.

    with mysql_server() as server:
        server.execute("CREATE TABLE shop.orders (id bigint PRIMARY KEY)")

Promises: the server listens on 127.0.0.1 only, keeps its files in a temporary directory, and stops with the `with`
block or with this process, also when it is killed. It writes a binary log of rows. A machine without a server gets the
one of Debian's packages, in the user's cache; nothing is installed.
Does not know: pytest; a fixture is three lines around `mysql_server`."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.connectors.jdbc.driver import DatabaseFailure
from millstream.connectors.jdbc.mysql.driver import connect, fetch
from millstream.errors import ExternalError, UserError
from millstream.testing.guarded import build_guarded_command

_SETTINGS = {
    "bind-address": "127.0.0.1",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "server-id": "1",
    "character-set-server": "utf8mb4",
    "innodb-buffer-pool-size": "32M",
    "innodb-log-file-size": "16M",
    "innodb-flush-log-at-trx-commit": "2",  # a killed server loses no data without these; only a power loss would
    "sync-binlog": "0",
    "innodb-flush-method": "nosync",
    "key-buffer-size": "1M",
    "aria-pagecache-buffer-size": "8M",
    "performance-schema": "OFF",
}
_PACKAGES = ("mariadb-server-core", "libaio1", "libaio1t64", "liburing2", "libnuma1")
_PLACES = ("/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin")
_SQL_FILES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql", "mariadb_system_tables.sql",
              "mariadb_system_tables_data.sql")  # fmt: skip
_DOWNLOAD_SECONDS = 240
_PID_FILE = "server.pid"


class NoMysql(UserError):
    """MariaDB is not installed."""

    hint = "install MariaDB, or put mariadbd on PATH; on Debian: apt-get install mariadb-server-core"

    def __init__(self, reason: str) -> None:
        super().__init__(f"mariadbd is not on PATH, and its packages could not be downloaded: {reason}")


class MysqlDidNotStart(ExternalError):
    """The server exited, or did not answer in time."""

    def __init__(self, log: str) -> None:
        self.log = log
        super().__init__(f"the MariaDB server does not answer; the end of its log: {log[-2000:].strip()}")


@dataclass(frozen=True)
class Programs:
    """The server's program, the directory of its SQL files and messages, and the libraries it needs."""

    server: str
    share: str
    libraries: str = ""

    def environment(self) -> dict[str, str]:
        """Return the environment of the server's process."""
        return {**os.environ, **({"LD_LIBRARY_PATH": self.libraries} if self.libraries else {})}


def find_programs() -> Programs:
    """Return an installed server, or that of Debian's packages in the user's cache."""
    server = shutil.which("mariadbd") or shutil.which("mariadbd", path=os.pathsep.join(_PLACES))
    if server is not None:
        root = Path(os.path.realpath(server)).parent.parent
        for share in (root / "share" / "mysql", root / "share" / "mariadb"):
            if any((share / name).exists() for name in _SQL_FILES):
                return Programs(server, str(share))
    folder = _download_packages()
    libraries = sorted({str(path.parent) for path in folder.rglob("*.so*")})
    return Programs(str(folder / "usr/sbin/mariadbd"), str(folder / "usr/share/mysql"), os.pathsep.join(libraries))


def _download_packages() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream" / "mariadb"
    if cache.exists():
        return cache
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        reason = "this is no Debian"
        raise NoMysql(reason)
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as temporary:
        root = Path(temporary, "root")
        for package in _PACKAGES:
            problem = _download(package, temporary)
            if problem and package == _PACKAGES[0] and os.geteuid() == 0:
                # a new container has no package lists
                subprocess.run(
                    ["apt-get", "update", "-qq"], capture_output=True, timeout=_DOWNLOAD_SECONDS, check=False
                )
                problem = _download(package, temporary)
            if problem and package == _PACKAGES[0]:
                raise NoMysql(problem)
        for archive in sorted(Path(temporary).glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(archive), str(root)], check=True, timeout=_DOWNLOAD_SECONDS)
        with contextlib.suppress(OSError):  # another process was faster
            root.rename(cache)
    return cache


def _download(package: str, folder: str) -> str:
    """Download a package; return what went wrong, or an empty text."""
    command = ["apt-get", "download", "-qq", package]
    try:
        process = subprocess.run(command, cwd=folder, capture_output=True, timeout=_DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "apt-get did not end in time"
    return process.stderr.decode(errors="replace").strip() if process.returncode else ""


class MysqlServer:
    """A server with one user, `millstream`, who has all privileges; `mysql_server` creates it."""

    def __init__(self, directory: str, port: int, settings: Mapping[str, str], programs: Programs) -> None:
        self.host, self.port, self.user, self.password = "127.0.0.1", port, "millstream", "secret"
        self._directory = directory
        self._settings = dict(settings)
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None

    def url_of(self, database: str) -> str:
        """Return the address of a database, with user and password."""
        return f"mysql://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    def jdbc_url_of(self, database: str) -> str:
        """Return the address of a database as a JDBC URL."""
        return f"jdbc:mysql://{self.host}:{self.port}/{database}?user={self.user}&password={self.password}"

    def connect(self, database: str = "") -> Any:
        """Open a connection in autocommit mode."""
        return connect(self.url_of(database))

    def execute(self, statement: str, parameters: Any = None, *, database: str = "") -> list[Any]:
        """Run one statement on a new connection and return its rows, as text."""
        connection = self.connect(database)
        try:
            return fetch(connection, statement, parameters)
        finally:
            connection.close()

    def initialize(self) -> None:
        """Create the system tables and the user."""
        texts = ["CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket = NULL;\n"]
        for name in _SQL_FILES:
            with contextlib.suppress(FileNotFoundError):
                texts.append(Path(self._programs.share, name).read_text(encoding="utf-8"))
        texts.append(
            f"FLUSH PRIVILEGES;\nCREATE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}';\n"
            f"GRANT ALL ON *.* TO '{self.user}'@'%' WITH GRANT OPTION;\n"
        )
        process = subprocess.run(
            self._build_command("--bootstrap"),
            input="\n".join(texts).encode(),
            capture_output=True,
            env=self._programs.environment(),
            cwd=self._directory,
            check=False,
        )
        if process.returncode != 0:
            raise MysqlDidNotStart(process.stderr.decode(errors="replace"))

    def _build_command(self, *arguments: str) -> list[str]:
        command = [
            self._programs.server,
            "--no-defaults",
            f"--datadir={self._directory}/data",
            f"--lc-messages-dir={self._programs.share}",
            "--skip-name-resolve",
            f"--socket={self._directory}/socket",
            *([f"--user={_find_unprivileged_user()}"] if os.geteuid() == 0 else []),
            *arguments,
        ]
        if "--bootstrap" not in arguments:
            command += [f"--{name}={value}" for name, value in {**self._settings, "port": str(self.port)}.items()]
        return command

    def start(self, timeout: float = 60.0) -> None:
        """Start the server and wait until it answers.

        Raises:
            MysqlDidNotStart: The server exited, or did not answer within `timeout` seconds.

        """
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(
                build_guarded_command(self._build_command(), _PID_FILE),
                stdout=log,
                stderr=log,
                stdin=subprocess.PIPE,
                env=self._programs.environment(),
                cwd=self._directory,
                start_new_session=True,  # Ctrl-C interrupts the tests only, which then stop the server
            )
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.connect().close()
            except DatabaseFailure:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise MysqlDidNotStart(Path(self._log).read_text(errors="replace")) from None
                time.sleep(0.05)
            else:
                return

    def stop(self, *, kill: bool = False) -> None:
        """Shut the server down, or with `kill` kill it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        for number in (signal.SIGTERM, signal.SIGKILL)[kill:]:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(Path(self._directory, _PID_FILE).read_text(encoding="ascii")), number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
                break
        process.stdin.close()

    def restart(self, *, kill: bool = False) -> None:
        """Stop the server and start it again with the same files."""
        self.stop(kill=kill)
        self.start()

    @property
    def _log(self) -> str:
        return os.path.join(self._directory, "log")


@contextlib.contextmanager
def mysql_server(**settings: str) -> Iterator[MysqlServer]:
    """Start an empty server; it stops with the `with` block.

    Args:
        settings: Settings of the server; underscores stand for hyphens.

    Raises:
        NoMysql: There is no server, and none could be downloaded.
        MysqlDidNotStart: The server does not start.

    """
    directory = tempfile.mkdtemp(prefix="millstream-mysql-")
    server: MysqlServer | None = None
    try:
        os.mkdir(os.path.join(directory, "data"))
        if os.geteuid() == 0:
            for path in (directory, os.path.join(directory, "data")):
                shutil.chown(path, _find_unprivileged_user())
        dashed_settings = {name.replace("_", "-"): value for name, value in settings.items()}
        server = MysqlServer(directory, _free_port(), {**_SETTINGS, **dashed_settings}, find_programs())
        server.initialize()
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _find_unprivileged_user() -> str:
    """Return the user that the server runs as instead of root."""
    for name in ("mysql", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    problem = "the server would run as root, and there is no user mysql or nobody"
    raise MysqlDidNotStart(problem)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
