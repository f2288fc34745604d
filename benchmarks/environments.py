"""The environments that contestants run in: millstream's own, and one for each peer that needs other packages.

Promises: an environment is made once, under the cache directory, and is whole or absent; millstream's own is never
changed.
Does not know: benchmarks."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = {"flink": "apache-flink==2.3.0", "bytewax": "bytewax==0.21.1"}
# transformWithState in Python reads and writes state through protocol buffers, which pyspark does not bring along.
SPARK_EXTRAS = "protobuf"
INSTALL_DEADLINE = 900


class EnvironmentFailed(Exception):
    """An environment could not be made; the message ends with what pip said last."""


@dataclass(slots=True)
class Environments:
    """Interpreters and variables by environment. `pythons` are interpreters to use instead of making one."""

    cache: Path
    pythons: dict[str, Path] = field(default_factory=dict)

    def python(self, name: str) -> Path:
        """The interpreter of an environment, which is made if it is absent."""
        if name not in PACKAGES:
            return Path(sys.executable)
        return self.pythons.get(name) or self._made(name)

    def variables(self, name: str) -> dict[str, str]:
        """The variables of an environment; its programs come first on PATH, as PyFlink's thread mode needs."""
        python = self.python(name)
        paths = [str(REPOSITORY)]
        if name not in PACKAGES:
            paths.append(str(REPOSITORY / "src"))
        if name == "spark" and not _has_protobuf():
            paths.append(str(self._extras()))
        return {
            **os.environ,
            "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", "")]),
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": str(python),
            "MILLSTREAM_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "MILLSTREAM_CLASS_ARCHIVE": "false",  # nothing runs in the background of what is measured
        }

    def choose_engine(self, engine: str) -> dict[str, str]:
        """The variable that names a configuration file, in which the engine of millstream's jobs is set."""
        place = self.cache / f"conf-{engine}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "config.yaml").write_text(f"millstream.engine: {engine}\n", encoding="utf-8")
        return {"MILLSTREAM_CONF_DIR": str(place)}

    def _made(self, name: str) -> Path:
        place = self.cache / name
        if not (place / "whole").exists():
            shutil.rmtree(place, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(place)])
            _run([str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", PACKAGES[name]])
            (place / "whole").touch()
        return place / "bin" / "python"

    def _extras(self) -> Path:
        place = self.cache / "spark-extras"
        if not (place / "whole").exists():
            shutil.rmtree(place, ignore_errors=True)
            _run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), SPARK_EXTRAS])
            (place / "whole").touch()
        return place


def _has_protobuf() -> bool:
    return importlib.util.find_spec("google") is not None and importlib.util.find_spec("google.protobuf") is not None


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        message = f"not done after {INSTALL_DEADLINE} s: {' '.join(command)}"
        raise EnvironmentFailed(message) from None
    if done.returncode:
        last = " / ".join(done.stderr.strip().splitlines()[-3:])
        message = f"{' '.join(command)} failed: {last}"
        raise EnvironmentFailed(message)
