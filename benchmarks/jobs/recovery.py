"""How long a job needs to go on after a kill: of a worker and of a driver here, of an executor on a cluster.

Promises: the fault tests `kills` and `executors` with a number of kills, their output compared with a run without
faults; a recovery lasts from the kill to the second epoch after it.
Does not know: how processes are killed."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks import common

from millstream_chaos.registry import plan, play


def main() -> None:
    """Measure."""
    args = common.arguments(__doc__, case="kills", size="normal", seed=1, engine="jobs")
    trace = replace(plan(args.case, args.seed, args.size), engine=args.engine)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        report = play(trace, Path(directory))
    print("\n".join(report.format_lines()), file=sys.stderr)
    if not report.ok:
        message = "the output is wrong, or a recovery took too long"
        raise SystemExit(message)
    p95 = {name.replace(" ", "_"): value for name, value in report.figures.items() if name.endswith("p95 s")}
    common.answer({**p95, "p95_s": max(p95.values())})


if __name__ == "__main__":
    main()
