"""Writes the plans and savepoints that later releases must run: python tests/golden/compiled_plans/record.py.

One directory a release, and in it an archive for each way of planning: a compiled plan, a canonical savepoint of a job
that ran it, what the job had told by then, and the tables it ends with. Run it once for a release; a directory that is
there stays as it is."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

from millstream import __version__
from millstream.client.job_client import JobClient
from millstream.client.local import LocalHandle
from millstream.cluster import entrypoint
from millstream.table import TableEnvironment
from millstream.testing.inline_engine import InlineEngine

HERE = Path(__file__).parent
WAYS = {"rows": "false", "mini-batch": "true"}


def _load(name: str) -> Any:
    """A file beside this one as a module that pickle can find."""
    spec = importlib.util.spec_from_file_location(f"golden_sql_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAM = _load("program")


def start(env: TableEnvironment, operations: Any) -> JobClient:
    """Plans as a job on the inline engine."""
    graph = env._graph_of_operations(operations)
    running = entrypoint.submit(graph, env._env._configuration, "golden", engine=InlineEngine())
    return JobClient(LocalHandle(running))


def stopped(client: JobClient, files: Any) -> str:
    """A savepoint of the job when it has told all there is of the first rows."""
    wanted = sorted((k, str(n)) for k, n in (("a", 3), ("b", 3), ("c", 1)))
    until = time.monotonic() + 60
    while sorted(row[:2] for row in PROGRAM.final(PROGRAM.changes(files)).get("groups", ())) != wanted:
        assert time.monotonic() < until, PROGRAM.changes(files)
        time.sleep(0.01)
    return str(client.stop_with_savepoint(False).result(60))


def main() -> None:
    """Record the plans and savepoints of this release."""
    target = HERE / f"release-{__version__}"
    if target.exists():
        sys.exit(f"{target.name} is there already")
    for way, mini_batch in WAYS.items():
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch) / way
            place.mkdir()
            recorded(place, mini_batch)
            target.mkdir(exist_ok=True)
            with tarfile.open(target / f"{way}.tar.xz", "w:xz") as archive:
                archive.add(place, way)


def recorded(place: Path, mini_batch: str) -> None:
    """A plan, a savepoint, and what they give, in a directory."""
    settings = {"table.exec.mini-batch.enabled": mini_batch, "parallelism.default": "1"}
    files = PROGRAM.open_world()
    env = PROGRAM.environment({**settings, "execution.checkpointing.savepoint-dir": str(place.parent)})
    plan = env.compile_plan_sql(PROGRAM.statement_set())
    plan.write_to_file(str(place / "plan.json"))
    PROGRAM.give(PROGRAM.FIRST)
    path = stopped(start(env, plan._operations), files)
    before = PROGRAM.changes(files)
    shutil.move(path, place / "savepoint")
    files = PROGRAM.open_world()
    env = PROGRAM.environment(settings)
    PROGRAM.give(PROGRAM.FIRST)
    PROGRAM.give(PROGRAM.LATER)
    PROGRAM.close()
    plan = env.compile_plan_sql(PROGRAM.statement_set())
    start(env, plan._operations).get_job_execution_result().result(60)
    expected = {"before": before, "final": PROGRAM.final(PROGRAM.changes(files))}
    (place / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


def unpacked(archive: Path, into: Path) -> Path:
    """The directory that an archive holds."""
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="data")
    return into / archive.name.removesuffix(".tar.xz")


if __name__ == "__main__":
    main()
