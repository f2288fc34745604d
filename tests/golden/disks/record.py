"""Writes the disks of jobs of this release that later ones must recover: python tests/golden/disks/record.py.

One archive a release, with a directory for each sample program: the files of a job whose driver died after it had
published its third checkpoint and before it committed the output. Run it once for a release; an archive that is there
stays as it is."""

from __future__ import annotations

import zipfile
from pathlib import Path

from millstream import __version__
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, find_operation, run

HERE = Path(__file__).parent
EPOCH_RECORDS, EVERY, LAST = 9, 2, 3


def setup_of(program: str) -> Setup:
    """The job of a program: it is the same in every release."""
    return Setup(PROGRAMS[program], epoch_records=EPOCH_RECORDS, checkpoint_every=EVERY)


def record(archive: Path) -> None:
    """Write the disks of all programs that have so many checkpoints."""
    with zipfile.ZipFile(archive, "x", zipfile.ZIP_DEFLATED) as target:
        for name in sorted(PROGRAMS):
            setup = setup_of(name)
            with World() as world:
                if len(run(setup, world).checkpoints) <= LAST:
                    continue
            with World() as world:
                run(setup, world, Faults(storage=(find_operation(setup, f"chk-{LAST}/_metadata"), "after")))
                for path, data in sorted(world.disk.files.items()):
                    target.writestr(zipfile.ZipInfo(f"{name}{path}"), data, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    record(HERE / f"release-{__version__}.zip")
