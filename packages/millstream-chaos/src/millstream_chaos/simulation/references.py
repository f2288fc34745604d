"""The output of a run without faults, checked against plain Python for the sample programs.

Promises: an error if the engine and plain Python disagree.
Does not know: faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from millstream.errors import InternalError
from millstream.job.job_status import JobStatus
from millstream_chaos.samples import expected
from millstream_chaos.samples.programs import Longer
from millstream_chaos.simulation.lives import run
from millstream_chaos.simulation.setup import Program, Setup
from millstream_chaos.simulation.world import World


class ReferenceDiffers(InternalError):
    """The output of a run without faults differs from what plain Python computes from the same input."""

    def __init__(self, name: str, missing: Sequence[str], unexpected: Sequence[str]) -> None:
        self.missing, self.unexpected = missing, unexpected
        rows = f"{len(missing)} rows are missing, such as {missing[:3]}; {len(unexpected)} are unexpected, such as"
        super().__init__(
            f"the output of {name} without faults is not what plain Python computes: {rows} {unexpected[:3]}"
        )


def _sample(program: Program) -> tuple[str, int] | None:
    """Return the name of a sample program and the factor of its input; None for other programs."""
    inner, times = (program.program, program.times) if isinstance(program, Longer) else (program, 1)
    name = getattr(inner, "__name__", "")
    return (name, times) if inner.__module__.startswith("millstream_chaos.") and name in expected.OUTPUTS else None


def compute_reference(setup: Setup) -> list[str]:
    """Return the output of a run in one epoch, at parallelism 1 and without faults.

    Raises:
        ReferenceDiffers: Plain Python computes another output for this sample program.

    """
    with World() as world:
        whole = replace(setup, parallelism=1, epoch_records=100_000, block_records=65536, checkpoint_every=None)
        life = run(whole, world)
        if life.status is not JobStatus.FINISHED:
            raise life.failure or AssertionError(life)
        visible = world.visible()
    sample = _sample(setup.program)
    if sample is not None:
        actual, computed = Counter(visible), Counter(expected.compute_rows(*sample))
        if actual != computed:
            raise ReferenceDiffers(sample[0], [*(computed - actual).elements()], [*(actual - computed).elements()])
    return visible
