"""The expected output is also computed without the engine, so an error that all runs share is detected."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millstream.windows.evictors import CountEvictor
from millstream_chaos.cases import clocks
from millstream_chaos.jobs import drivers
from millstream_chaos.jobs.keyed_job import Specification, Windowed, write_input
from millstream_chaos.samples import expected
from millstream_chaos.samples.programs import Longer
from millstream_chaos.simulation import ReferenceDiffers, Setup, compute_reference


def test_the_output_of_every_program_is_computed() -> None:
    assert expected.OUTPUTS.keys() == clocks.ALL.keys()


@pytest.mark.parametrize("name", sorted(clocks.ALL))
def test_the_engine_computes_the_same_as_plain_python(name: str) -> None:
    program = clocks.ALL[name]
    assert compute_reference(Setup(program)) == expected.compute_rows(name)
    assert compute_reference(Setup(Longer(program, 3))) == expected.compute_rows(name, 3)


def test_an_operator_that_is_wrong_in_every_run_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountEvictor, "evict_before", lambda *_: None)
    with pytest.raises(ReferenceDiffers, match="10 rows are missing"):
        compute_reference(Setup(clocks.ALL["evicted"]))


def test_a_chaos_job_that_is_wrong_in_every_run_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = Specification(str(tmp_path))
    write_input(specification.input, 1, records=400, keys=20, files=2)
    assert drivers.run_without_faults(specification, tmp_path / "right")
    process = Windowed.process

    def lose_one(self: Windowed, key: str, context: Any, elements: Any) -> Any:
        return process(self, key, context, list(elements)[1:])

    monkeypatch.setattr(Windowed, "process", lose_one)
    with pytest.raises(drivers.ReferenceDiffers, match="lines are missing"):
        drivers.run_without_faults(replace(specification), tmp_path / "wrong")
