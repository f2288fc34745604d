"""The process of the SQL workspace of a session cluster, whose jobs run without Spark."""

from __future__ import annotations

import sys

from millstream.cli import session_workspace
from millstream.cluster import entrypoint
from millstream.testing.inline_engine import InlineEngine

if __name__ == "__main__":
    entrypoint.SparkEngine = lambda _: InlineEngine()  # type: ignore[assignment,misc,return-value]
    session_workspace.main(int(sys.argv[1]))
