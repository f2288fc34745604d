"""A Spark standalone cluster on this machine for tests, from the pip package of Spark.

Promises: a master and workers on loopback addresses and free ports. On Linux each worker has an address of its own, so
that Spark sees several machines. No process is left when the `with` block ends.
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
from millstream.testing.host import LOCALHOST, Host

_START_SECONDS = 60
_STOP_SECONDS = 10
_OVERHEAD = 512  # MB that Spark reserves beside the heap of an executor
_EXECUTOR = "CoarseGrainedExecutorBackend"
_LOOPBACK = "127.0.0.1"
_SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # options for JVMs that share few cores
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
_JAVA = (  # the options of spark-class, without the second JVM that it starts to compute them
    *_SMALL_JVM.split(),
    "-Dspark.deploy.maxExecutorRetries=-1",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
)


class ClusterNotStarted(ExternalError):
    """A master or worker did not start; its log has the reason."""

    def __init__(self, daemon: str, log: Path) -> None:
        last = " | ".join(log.read_text(errors="replace").splitlines()[-3:]) if log.exists() else "no log"
        super().__init__(f"the {daemon} did not start: {last}", hint=f"see {log}")


@dataclass(frozen=True)
class Process:
    """A process in the list of the system."""

    pid: int
    parent: int
    command: str


class SparkCluster:
    """A master and workers; use it in a `with` statement.

    Args:
        workers: The number of workers.
        cores: The number of cores of each worker; each executor has one.
        memory: The heap of each executor, in MB.
        python_path: Folders in which executors look for modules, beside that of millstream.
        environment: Environment variables of the processes.
        hosts: Where the master and each worker run, in this order; on loopback by default.
        configuration: Spark's settings of the master and the workers. A driver reads them with
            SPARK_CONF_DIR=`conf_dir`.

    """

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
        self._count, self._cores, self._memory = workers, cores, memory
        self._python_path = [*python_path, *_find_own_path()]
        self._environment = dict(environment or {})
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
                self._environment["SPARK_CONF_DIR"] = str(self.conf_dir)
            self._master = self._start("master", self._choose_host(0), ["org.apache.spark.deploy.master.Master"])
            self.url = self._wait_for_log("master", self._master, r"Starting Spark master at (spark://\S+)")
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
        """Return the options with which a driver on this machine uses the cluster."""
        return {
            "millstream.spark.master": self.url,
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": _SMALL_JVM,
            "spark.executor.extraJavaOptions": _SMALL_JVM,
            "spark.executor.cores": "1",
            "spark.executor.memory": f"{self._memory}m",
        }

    # -------------------------------------------------------------------------------------------- master and workers

    def kill_master(self) -> None:
        """Kill the master. It forgets its applications; workers and executors continue to run."""
        assert self._master is not None
        kill(self._master.pid)
        self._master.wait()

    def start_master(self) -> None:
        """Start a master at the address of the one that was killed."""
        more = ["--port", self.url.rpartition(":")[2]]  # overrides the earlier option of the same name
        self._master = self._start("master", self._choose_host(0), ["org.apache.spark.deploy.master.Master"], more)
        self._wait_for_log("master", self._master, r"Starting Spark master at (spark://\S+)")

    def start_worker(self, number: int) -> None:
        """Start a worker, also in place of one that was killed."""
        self._launch_worker(number)
        self._await_worker(number)

    def _choose_host(self, index: int) -> Host:
        """Return the host of the master (0) or of a worker. On Linux each worker has a loopback address of its own."""
        if self._hosts:
            return self._hosts[index]
        return Host(f"127.0.0.{index}") if index > 0 and sys.platform == "linux" else LOCALHOST

    def _launch_worker(self, number: int) -> None:
        host = self._choose_host(number + 1)
        name = f"worker-{number}"
        command = ["org.apache.spark.deploy.worker.Worker"]
        memory = (self._memory + _OVERHEAD) * self._cores
        limits = ["-c", str(self._cores), "-m", f"{memory}m", "-d", str(self._directory / name)]
        self._workers[number] = self._start(name, host, command, [*limits, self.url])

    def _await_worker(self, number: int) -> None:
        self._wait_for_log(f"worker-{number}", self._workers[number], r"Successfully registered with master (\S+)")

    def machines(self) -> list[int]:
        """Return the process ids of the workers, by number."""
        return [self._workers[number].pid for number in sorted(self._workers)]

    def executors(self, worker: int | None = None) -> list[int]:
        """Return the process ids of the executors of one worker, or of all."""
        parents = {process.pid for number, process in self._workers.items() if worker in (None, number)}
        return [child.pid for child in processes() if child.parent in parents and _EXECUTOR in child.command]

    def python_workers(self) -> list[int]:
        """Return the process ids of the Python workers of all executors."""
        return [pid for executor in self.executors() for pid in python_workers(executor)]

    def wait_for_executors(self, count: int, seconds: float = 30.0) -> list[int]:
        """Wait until there are `count` executors and return their process ids.

        Raises:
            ExternalError: There are fewer after `seconds`.

        """
        deadline = time.monotonic() + seconds
        while len(running := self.executors()) < count:
            if time.monotonic() > deadline:
                msg = f"{len(running)} of {count} executors were started within {seconds:g} s"
                raise ExternalError(msg, hint=f"see the logs in {self._directory}")
            time.sleep(0.05)
        return running

    def kill_worker(self, number: int) -> None:
        """Kill a worker with its executors and their Python workers, as if the machine had failed."""
        worker = self._workers[number]
        for pid in [worker.pid, *find_descendants(worker.pid)]:
            kill(pid)
        worker.wait()

    def stop(self) -> None:
        """Stop all processes; a second call does nothing."""
        started = [*self._workers.values(), *([self._master] if self._master is not None else [])]
        children = [pid for process in started for pid in find_descendants(process.pid)]
        for process in started:
            process.terminate()
        for process in started:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in children:
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
            "SPARK_SCALA_VERSION": _read_scala_version(home),
            "SPARK_LOCAL_IP": host.address,
            "PYTHONPATH": os.pathsep.join(self._python_path),
            "PYSPARK_PYTHON": sys.executable,
            **self._environment,
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

    def _wait_for_log(self, name: str, process: subprocess.Popen[bytes], pattern: str) -> str:
        log = self._directory / f"{name}.log"
        deadline = time.monotonic() + _START_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            match = re.search(pattern, log.read_text(errors="replace"))
            if match is not None:
                return match[1]
            time.sleep(0.1)
        raise ClusterNotStarted(name, log)


def spark_home() -> Path:
    """Return the home directory of the Spark in the pip package."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        msg = "pyspark is not installed"
        raise UserError(msg, hint="pip install pyspark")
    return Path(spec.origin).parent


def _read_scala_version(home: Path) -> str:
    """Return the Scala version of Spark, which a worker needs to start an executor."""
    core = next((home / "jars").glob("spark-core_*.jar")).name
    return core.removeprefix("spark-core_").partition("-")[0]


def _find_own_path() -> list[str]:
    """Return the folder from which this process imported millstream, for the executors."""
    return [str(Path(__file__).resolve().parent.parent.parent)]


# ------------------------------------------------------------------------------------------------- processes in general


def processes() -> Iterator[Process]:
    """Yield every process of this machine."""
    listing = subprocess.run(["ps", "-Awwo", "pid=,ppid=,command="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        pid, parent, *command = line.split(None, 2)
        yield Process(int(pid), int(parent), command[0] if command else "")


def find_descendants(pid: int, *, where: Callable[[Process], bool] = lambda _: True) -> list[int]:
    """Return the process ids of all descendants of a process that `where` accepts, children first."""
    all_processes = list(processes())
    descending: list[Process] = []
    generation = [pid]
    while generation:
        children = [process for process in all_processes if process.parent in generation]
        descending += children
        generation = [process.pid for process in children]
    return [process.pid for process in descending if where(process)]


def python_workers(pid: int) -> list[int]:
    """Return the process ids of the Python workers of a JVM or driver: the daemon forks them from itself."""
    daemons = set(find_descendants(pid, where=lambda process: "-m millstream.engine.spark.daemon" in process.command))
    return [process.pid for process in processes() if process.pid in daemons and process.parent in daemons]


def kill(pid: int, how: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal to a process, SIGKILL by default; return False if there is no such process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, how)
        return True
    return False
