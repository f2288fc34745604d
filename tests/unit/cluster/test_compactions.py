"""When state files are compacted: in steps, depending on the changes; neither epochs nor files grow with state."""

import dataclasses

import pytest

from millstream.cluster.progress import plan_compactions
from millstream.state.compaction import PART_BYTES, PART_ROWS, Rewrite, select_next_groups
from millstream.state.handles import Handle, Lineage, Part
from millstream.state.key_groups import KeyGroupRange

GROUPS = KeyGroupRange(0, 63)
MEGABYTE = 1 << 20


class Job:
    """One subtask whose state has a given size, spread evenly over its key groups, which follows the compaction
    plan."""

    def __init__(self, size, rows, change, changed_rows):
        self.size, self.rows, self.change, self.changed_rows = size, rows, change, changed_rows
        self.lineage, self.epoch, self.renewed = Lineage(), 0, 0

    def run(self):
        """Run one epoch; returns the bytes written in addition to the changes."""
        self.epoch += 1
        wanted = plan_compactions({"op": (self.lineage,)}).get("op", {}).get(0)
        name = f"e{self.epoch}"
        changes = Handle(name, self.change, "", self.epoch, self.changed_rows)
        if isinstance(wanted, Rewrite):
            written, after = [], self.lineage
            for number in range(wanted.parts):
                part = self.part(f"{name}.{number}", select_next_groups(after, GROUPS, wanted))
                after = after.extend(part)
                written.append(part)
            self.lineage = self.lineage.extend(*written, dataclasses.replace(changes, follows=self.lineage.version))
            return sum(handle.size for handle in written)
        if wanted is None:
            self.lineage = self.lineage.extend(changes)
            return 0
        replaced = self.lineage.own[wanted:]
        size, rows = (sum(getattr(each, what) for each in (*replaced, changes)) for what in ("size", "rows"))
        merged = dataclasses.replace(changes, size=size, rows=rows, covers=tuple(each.name for each in replaced))
        self.lineage = self.lineage.extend(merged)
        return size - self.change

    def part(self, name, groups):
        one = self.size / len(GROUPS)
        most = max(1, min(int(PART_BYTES / one), int(PART_ROWS * len(GROUPS) / self.rows), len(groups)))
        held = KeyGroupRange(groups.start, groups.start + most - 1)
        part = None if held == GROUPS else Part(held, held, GROUPS)
        rows = self.rows * len(held) // len(GROUPS)
        return Handle(name, int(one * len(held)), "", self.epoch, rows, base=True, part=part)


@pytest.mark.parametrize("rows", [100, 10_000, 500_000])
@pytest.mark.parametrize("change", [MEGABYTE // 50, MEGABYTE, 5 * MEGABYTE, 100 * MEGABYTE])
@pytest.mark.parametrize("state", [MEGABYTE // 2, 50 * MEGABYTE, 1000 * MEGABYTE])
def test_the_size_of_written_and_stored_files_is_bounded(state, change, rows):
    change = min(change, state)
    job = Job(state, state // 20, change, min(rows, state // 20))
    largest = max(PART_BYTES, state // len(GROUPS))
    for _ in range(700):
        more = job.run()
        assert more <= largest + change
        files = job.lineage.own
        assert sum(handle.weight for handle in files) <= 6 * state + 8 * max(change, MEGABYTE)
    small = min(PART_BYTES, PART_ROWS * 20) / 8  # what is larger than that is not merged
    assert len(files) <= 3 * 64 + 6 * state / max(change, small) + len(GROUPS)


def test_small_changes_of_a_large_state_are_merged_again_and_again():
    job = Job(1000 * MEGABYTE, 10_000_000, 100, 1)
    most = 0
    for _ in range(10_000):
        job.run()
        most = max(most, len(job.lineage.own))
    assert most < 140


def test_names_of_merged_files_do_not_accumulate():
    job = Job(size=100, rows=3, change=1, changed_rows=1)
    names = []
    for _ in range(10_000):
        job.run()
        names.append(sum(1 + len(handle.covers) for handle in job.lineage.handles))
    assert max(names) < 350, "they travel with every epoch and are in every checkpoint"
    newest = [handle for handle in job.lineage.own if handle.covers][-1]
    assert job.lineage.missing(newest.covers[0]) is not None, "a store that is a little behind catches up"
