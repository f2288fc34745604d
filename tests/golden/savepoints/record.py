"""Writes the savepoints of this release that later ones must restore: python tests/golden/savepoints/record.py.

One directory a release, with a canonical and a native savepoint, what the job had shown by then, and what it shows in
all. Run it once for a release; a directory that is there stays as it is."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from millstream import __version__
from millstream.client.job_client import JobClient
from millstream.client.local import LocalHandle
from millstream.cluster import entrypoint
from millstream.datastream import StreamExecutionEnvironment
from millstream.testing.feed import Feed
from millstream.testing.inline_engine import InlineEngine
from millstream_chaos.outputs.visible_output import VisibleOutput, read_visible_rows
from millstream_chaos.storage.memory_files import MemoryFileSystem, Named

HERE = Path(__file__).parent


def _load(name: str) -> Any:
    """A file beside this one as a module that pickle can find."""
    spec = importlib.util.spec_from_file_location(f"golden_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAM = _load("program")


def start(settings: dict[str, str], feed: Feed, rules: Feed, files: Any) -> JobClient:
    """The job, on the inline engine."""
    env = StreamExecutionEnvironment()
    for key, value in {"parallelism.default": "2", "execution.checkpointing.interval": "5 ms", **settings}.items():
        env._configuration.set_string(key, value)
    PROGRAM.build(env, feed, rules, VisibleOutput(files, "/out"))
    running = entrypoint.submit(env._graph(), env._configuration, "golden", engine=InlineEngine())
    return JobClient(LocalHandle(running))


def feeds(*records: Any) -> tuple[Feed, Feed]:
    """Records, and the rules beside them."""
    return Feed.of(*records), Feed.of(("ann", 100), ("bob", 200))


def disk() -> tuple[MemoryFileSystem, Named]:
    """A place for output."""
    made = MemoryFileSystem()
    made.make_dirs("/out")
    return made, Named.of(made)


def main() -> None:
    """Record the savepoints of this release."""
    target = HERE / f"release-{__version__}"
    if target.exists():
        sys.exit(f"{target.name} is there already")
    expected: dict[str, Any] = {}
    for form in ("canonical", "native"):
        files, named = disk()
        feed, rules = feeds(*PROGRAM.FIRST)
        with tempfile.TemporaryDirectory() as scratch:
            settings = {"execution.checkpointing.savepoint-dir": scratch, "millstream.epoch.max-records": "1"}
            client = start(settings, feed, rules, named)
            while len(read_visible_rows(files, "/out")) < 20:
                time.sleep(0.01)
            path = client.stop_with_savepoint(False, format_type=form).result(30)
            before = read_visible_rows(files, "/out")
            shutil.copytree(path, target / form)
            feed.give(*PROGRAM.LATER).close()
            rules.close()
            start({"execution.state-recovery.path": path}, feed, rules, named).get_job_execution_result().result(30)
        expected[form] = {"before": before, "all": read_visible_rows(files, "/out")}
    (target / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
