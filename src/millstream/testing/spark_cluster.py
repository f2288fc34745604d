"""A Spark standalone cluster on this machine, from the pip package, whose machines can be killed.

Promises: a master and workers on loopback addresses and free ports, each worker a machine of its own to Spark where the
system has more than one such address; nothing is left running when the `with` block ends, however it ends.
Does not know: jobs.

    with SparkCluster(workers=2) as cluster:
        millstream run --master {cluster.url} -D spark.driver.host=127.0.0.1 ... job.py"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from millstream.engine.spark.java import find_java
from millstream.errors import ExternalError, UserError
from millstream.files.access import opener
from millstream.testing.network import LOCALHOST, Host

_START_SECONDS = 60
_STOP_SECONDS = 10
_OVERHEAD = 512  # MB beside the heap of an executor, as Spark counts it
_EXECUTOR = "CoarseGrainedExecutorBackend"
_LOOPBACK = "127.0.0.1"
_LEAN = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # several Javas share few cores
_OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "sun.nio.ch",
)
_JAVA = (  # what spark-class would say, without the second Java that it starts to find out
    *_LEAN.split(),
    "-Dspark.deploy.maxExecutorRetries=-1",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
)


class ClusterNotStarted(ExternalError):
    """A master or worker did not come up; its log says why."""

    def __init__(self, what: str, log: Path) -> None:
        last = " | ".join(log.read_text(errors="replace").splitlines()[-3:]) if log.exists() else "no log"
        super().__init__(f"the {what} did not start: {last}", hint=f"see {log}")


@dataclass(frozen=True)
class Process:
    """A process as the system shows it."""

    pid: int
    parent: int
    command: str


class SparkCluster:
    """A master and some workers. Every executor has one core and `memory` MB."""

    def __init__(
        self,
        workers: int = 2,
        *,
        cores: int = 1,
        memory: int = 512,
        python_path: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        hosts: Sequence[Host] = (),
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        """`hosts`: where the master and each worker run, in this order, if not all on loopback. `configuration` are
        Spark's settings of the master and the workers; a driver finds them with SPARK_CONF_DIR=`conf_dir`."""
        self._count, self._cores, self._memory = workers, cores, memory
        self._python_path = [*python_path, *_own_path()]
        self._given = dict(environment or {})
        self._configuration = dict(configuration or {})
        self._hosts = tuple(hosts)
        self._directory = Path(tempfile.mkdtemp(prefix="millstream-cluster-"))
        self.conf_dir = self._directory / "conf"
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self.url = ""

    def __enter__(self) -> SparkCluster:
        try:
            if self._configuration:
                self.conf_dir.mkdir(mode=0o700)
                lines = "".join(f"{key} {value}\n" for key, value in self._configuration.items())
                with open(self.conf_dir / "spark-defaults.conf", "w", opener=opener) as file:
                    file.write(lines)
                self._given["SPARK_CONF_DIR"] = str(self.conf_dir)
            self._master = self._start("master", self._host(0), ["org.apache.spark.deploy.master.Master"])
            self.url = self._told("master", self._master, r"Starting Spark master at (spark://\S+)")
            for number in range(self._count):
                self._launch_worker(number)
            for number in range(self._count):
                self._await_worker(number)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def settings(self) -> dict[str, str]:
        """What a driver on this machine needs to say to use the cluster."""
        return {
            "millstream.spark.master": self.url,
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": _LEAN,
            "spark.executor.extraJavaOptions": _LEAN,
            "spark.executor.cores": "1",
            "spark.executor.memory": f"{self._memory}m",
        }

    # ------------------------------------------------------------------------------------------------- its machines

    def kill_master(self) -> None:
        """The master dies, and with it what it knew of applications; workers and executors live on."""
        assert self._master is not None
        kill(self._master.pid)
        self._master.wait()

    def start_master(self) -> None:
        """Start a master at the address of one that was killed."""
        more = ["--port", self.url.rpartition(":")[2]]  # the last one counts
        self._master = self._start("master", self._host(0), ["org.apache.spark.deploy.master.Master"], more)
        self._told("master", self._master, r"Starting Spark master at (spark://\S+)")

    def start_worker(self, number: int) -> None:
        """Start a worker, or one in place of a worker that was killed."""
        self._launch_worker(number)
        self._await_worker(number)

    def _host(self, index: int) -> Host:
        """Where the master (0) or a worker runs. On loopback each worker has an address of its own where it can."""
        if self._hosts:
            return self._hosts[index]
        return Host(f"127.0.0.{index}") if index > 0 and sys.platform == "linux" else LOCALHOST

    def _launch_worker(self, number: int) -> None:
        host = self._host(number + 1)
        name = f"worker-{number}"
        command = ["org.apache.spark.deploy.worker.Worker"]
        room = (self._memory + _OVERHEAD) * self._cores
        limits = ["-c", str(self._cores), "-m", f"{room}m", "-d", str(self._directory / name)]
        self._workers[number] = self._start(name, host, command, [*limits, self.url])

    def _await_worker(self, number: int) -> None:
        self._told(f"worker-{number}", self._workers[number], r"Successfully registered with master (\S+)")

    def machines(self) -> list[int]:
        """The process ids of the workers, by number."""
        return [self._workers[number].pid for number in sorted(self._workers)]

    def executors(self, worker: int | None = None) -> list[int]:
        """The process ids of the executors, of one worker or of all."""
        parents = {process.pid for number, process in self._workers.items() if worker in (None, number)}
        return [each.pid for each in processes() if each.parent in parents and _EXECUTOR in each.command]

    def python_workers(self) -> list[int]:
        """The process ids of the Python workers of all executors."""
        return [pid for executor in self.executors() for pid in python_workers(executor)]

    def wait_for_executors(self, count: int, seconds: float = 30.0) -> list[int]:
        """The executors, once there are so many."""
        deadline = time.monotonic() + seconds
        while len(found := self.executors()) < count:
            if time.monotonic() > deadline:
                msg = f"{len(found)} executors run, {count} were waited for"
                raise ExternalError(msg, hint=f"see the logs in {self._directory}")
            time.sleep(0.05)
        return found

    def kill_worker(self, number: int) -> None:
        """The machine dies: the worker, its executors and their Python workers, all at once."""
        worker = self._workers[number]
        for pid in [worker.pid, *descendants(worker.pid)]:
            kill(pid)
        worker.wait()

    def stop(self) -> None:
        """End everything; twice is once."""
        started = [*self._workers.values(), *([self._master] if self._master is not None else [])]
        below = [pid for process in started for pid in descendants(process.pid)]
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in below:
            kill(pid)
        self._workers, self._master = {}, None
        shutil.rmtree(self._directory, ignore_errors=True)

    # ---------------------------------------------------------------------------------------------------- processes

    def _start(
        self, name: str, host: Host, command: Sequence[str], more: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        home = spark_home()
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java().home),
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": _scala_version(home),
            "SPARK_LOCAL_IP": host.address,
            "PYTHONPATH": os.pathsep.join(self._python_path),
            "PYSPARK_PYTHON": sys.executable,
            **self._given,
        }
        java = [f"{environment['JAVA_HOME']}/bin/java", "-cp", f"{home}/jars/*", "-Xmx192m", *_JAVA]
        address = ["--host", host.address, "--port", "0", "--webui-port", "0"]
        with (self._directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                host.command(*java, *command, *address, *more),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self._directory,
            )

    def _told(self, name: str, process: subprocess.Popen[bytes], pattern: str) -> str:
        log = self._directory / f"{name}.log"
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            found = re.search(pattern, log.read_text(errors="replace"))
            if found is not None:
                return found[1]
            time.sleep(0.1)
        raise ClusterNotStarted(name, log)


def spark_home() -> Path:
    """Where the pip package keeps Spark."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        msg = "pyspark is not installed"
        raise UserError(msg)
    return Path(spec.origin).parent


def _scala_version(home: Path) -> str:
    """The Scala that Spark was built with, without which a worker cannot say how to start an executor."""
    core = next((home / "jars").glob("spark-core_*.jar")).name
    return core.removeprefix("spark-core_").partition("-")[0]


def _own_path() -> list[str]:
    """Where this process found millstream: executors must find it too."""
    return [str(Path(__file__).resolve().parent.parent.parent)]


# ------------------------------------------------------------------------------------------------- processes in general


def processes() -> Iterator[Process]:
    """Every process of this machine."""
    told = subprocess.run(["ps", "-Awwo", "pid=,ppid=,command="], capture_output=True, text=True, check=True)
    for line in told.stdout.splitlines():
        pid, parent, *command = line.split(None, 2)
        yield Process(int(pid), int(parent), command[0] if command else "")


def descendants(pid: int, *, where: Callable[[Process], bool] = lambda _: True) -> list[int]:
    """The processes below one, nearest first, of those that `where` picks."""
    everything = list(processes())
    found: list[Process] = []
    layer = [pid]
    while layer:
        below = [each for each in everything if each.parent in layer]
        found += below
        layer = [each.pid for each in below]
    return [each.pid for each in found if where(each)]


def python_workers(pid: int) -> list[int]:
    """The Python workers below a JVM or a driver: children of the daemon that forks them."""
    daemons = set(descendants(pid, where=lambda each: "-m millstream.engine.spark.daemon" in each.command))
    return [each.pid for each in processes() if each.pid in daemons and each.parent in daemons]


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal, `kill -9` unless told otherwise; False when the process is gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
        return True
    return False
