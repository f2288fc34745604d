"""The job of the case `loops`, without faults: plain Python computes the same lines."""

from pathlib import Path

from millstream_chaos.jobs.drivers import use_inline_engine
from millstream_chaos.jobs.keyed_job import Specification, build
from millstream_chaos.jobs.loop_job import compute_lines
from millstream_chaos.outputs.compare import find_differences, read_lines


def test_the_job_writes_the_lines_that_plain_python_computes(tmp_path: Path) -> None:
    specification = Specification(str(tmp_path), loops=9)
    specification.output.mkdir()
    with use_inline_engine():
        build(specification).execute("loops")
    output = read_lines(specification.output)
    assert not [*find_differences(output, {"computed": list(compute_lines(9))})]
