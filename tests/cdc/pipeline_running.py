"""A pipeline in a thread, for tests that change its source while it runs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from millstream.cdc.definition import Pipeline
from millstream.cdc.running import run_pipeline

WAIT_SECONDS = 60


class RunningPipeline:
    """A pipeline that runs, and the jobs that it has started."""

    def __init__(self, pipeline: Pipeline, configuration: dict[str, str]) -> None:
        self.jobs: list[Any] = []
        self.problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(pipeline, configuration))
        self._thread.start()

    @staticmethod
    @contextlib.contextmanager
    def starter(folder: Path) -> Iterator[Callable[[Pipeline], RunningPipeline]]:
        """Yield a function that starts a pipeline; it is ended at the end of the block."""
        running: list[RunningPipeline] = []
        settings = {"execution.checkpointing.interval": "50 ms", "execution.checkpointing.dir": str(folder / "chk")}

        def start(pipeline: Pipeline) -> RunningPipeline:
            running.append(RunningPipeline(pipeline, settings))
            return running[-1]

        try:
            yield start
        finally:
            for each in running:
                each.end()

    def _run(self, pipeline: Pipeline, configuration: dict[str, str]) -> None:
        try:
            run_pipeline(pipeline, configuration, on_started=lambda job, _: self.jobs.append(job))
        except BaseException as problem:
            self.problem = problem

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for a state; raise the error of the pipeline if it has failed."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            if self.problem is not None:
                raise self.problem
            assert time.monotonic() < deadline, "the pipeline did not come so far"
            time.sleep(0.05)

    def end(self) -> None:
        """Cancel the jobs."""
        for job in self.jobs:
            job.cancel()
        self._thread.join(WAIT_SECONDS)
