"""The expected output is also computed without the engine, so a fault that all runs have in common is seen."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millstream.testing import chaos_clocks, chaos_driven, expected, simulation
from millstream.testing.chaos_job import Specification, Windowed, write_input
from millstream.testing.sample_programs import Longer
from millstream.testing.simulation import Setup, reference
from millstream.windows.evictors import CountEvictor


def test_the_output_of_every_program_is_computed() -> None:
    assert expected.OUTPUTS.keys() == chaos_clocks.ALL.keys()


@pytest.mark.parametrize("name", sorted(chaos_clocks.ALL))
def test_the_engine_gives_what_plain_python_computes(name: str) -> None:
    program = chaos_clocks.ALL[name]
    assert reference(Setup(program)) == expected.rows(name)
    assert reference(Setup(Longer(program, 3))) == expected.rows(name, 3)


def test_an_operator_that_is_wrong_in_every_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountEvictor, "evict_before", lambda *_: None)
    with pytest.raises(simulation.ReferenceDiffers, match="10 rows are missing"):
        reference(Setup(chaos_clocks.ALL["evicted"]))


def test_a_chaos_job_that_is_wrong_in_every_run_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = Specification(str(tmp_path))
    write_input(specification.input, 1, records=400, keys=20, files=2)
    assert chaos_driven.fault_free(specification, tmp_path / "right")
    process = Windowed.process

    def lose_one(self: Windowed, key: str, context: Any, elements: Any) -> Any:
        return process(self, key, context, list(elements)[1:])

    monkeypatch.setattr(Windowed, "process", lose_one)
    with pytest.raises(chaos_driven.ReferenceDiffers, match="lines are missing"):
        chaos_driven.fault_free(replace(specification), tmp_path / "wrong")
