"""What a snapshot leaves behind: names of files, and the chains they form.

Promises: a chain lists accepted files, bases by key group, then changes oldest first, and a store can tell from its own
version alone which of them it still lacks, or that it must start again; changes are left out of a chain when every key
group has a base that holds them, and not before.
Does not know: what is inside a file, or where files live."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millstream.errors import InternalError
from millstream.state.key_groups import MAX_PARALLELISM_LIMIT, KeyGroupRange


@dataclass(frozen=True, slots=True)
class Part:
    """Which key groups a base counts for: `groups`. Its file holds those of `written`; later parts took over the rest.

    `of` are all key groups of the subtask. What has no key group is in the part that begins where they begin, but for
    chunks of many keys, which are in any: a part has `chunks` or not."""

    groups: KeyGroupRange
    written: KeyGroupRange
    of: KeyGroupRange
    chunks: bool = False

    def to_json(self) -> dict[str, Any]:
        """The part as plain values."""
        ranges = {"groups": self.groups, "written": self.written, "of": self.of}
        found: dict[str, Any] = {name: [groups.start, groups.end] for name, groups in ranges.items()}
        return {**found, "chunks": True} if self.chunks else found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Part:
        """The inverse of `to_json`."""
        groups, written, of = (KeyGroupRange(*map(int, data[name])) for name in ("groups", "written", "of"))
        inside = 0 <= of.start <= written.start <= groups.start <= groups.end <= written.end <= of.end
        if not inside or of.end >= MAX_PARALLELISM_LIMIT:
            problem = f"{dict(data)} is no part of a base"
            raise ValueError(problem)
        return cls(groups, written, of, bool(data.get("chunks")))


@dataclass(frozen=True, slots=True)
class Handle:
    """One state file of one operator subtask: a base (from epoch 0) or the changes of some epochs.

    `covers` names the files whose changes this one repeats, because it was compacted from them: of an older compaction
    only the last one, for names add up and travel with every epoch. A small file may have
    been packed with others into one: `pack` is that one's name, `offset` where this one begins in it. Its name stays:
    stores know it by that. A base with a `part` holds some key groups only. `follows` is the version that these changes
    begin at, when the chain no longer has the file of that name."""

    name: str
    size: int
    sha256: str
    epoch: int
    rows: int = 0
    base: bool = False
    covers: tuple[str, ...] = ()
    pack: str = ""
    offset: int = 0
    part: Part | None = None
    follows: str = ""

    @property
    def weight(self) -> int:
        """The bytes that count: a file of which later parts took key groups over counts for less."""
        if self.part is None:
            return self.size
        return self.size * len(self.part.groups) // len(self.part.written)

    @property
    def file(self) -> str:
        """The file on storage that holds this one."""
        return self.pack or self.name

    def to_json(self) -> dict[str, Any]:
        """The handle as plain values."""
        return {
            "name": self.name,
            "size": self.size,
            "sha256": self.sha256,
            "epoch": self.epoch,
            "rows": self.rows,
            "base": self.base,
            "covers": list(self.covers),
            **({"pack": self.pack, "offset": self.offset} if self.pack else {}),
            **({"part": self.part.to_json()} if self.part is not None else {}),
            **({"follows": self.follows} if self.follows else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Handle:
        """The inverse of `to_json`."""
        return cls(
            name=str(data["name"]),
            size=int(data["size"]),
            sha256=str(data["sha256"]),
            epoch=int(data["epoch"]),
            rows=int(data["rows"]),
            base=bool(data["base"]),
            covers=tuple(data["covers"]),
            pack=str(data.get("pack", "")),
            offset=int(data.get("offset", 0)),
            part=None if data.get("part") is None else Part.from_json(data["part"]),
            follows=str(data.get("follows", "")),
        )


Chain = tuple[Handle, ...]


@dataclass(frozen=True, slots=True)
class Lineage:
    """All that one subtask's state is made of.

    `restored` holds the chains of other subtasks, (their index, their files), when the state was written at another
    parallelism; `own` is what this subtask wrote since."""

    own: Chain = ()
    restored: tuple[tuple[int, Chain], ...] = ()

    @property
    def version(self) -> str:
        """The name of the last accepted file; "" for no state at all."""
        if self.own:
            return self.own[-1].name
        return "+".join(chain[-1].name for _, chain in self.restored if chain)

    @property
    def bases(self) -> Chain:
        """The own files that hold state as it was at some epoch."""
        return tuple(handle for handle in self.own if handle.base)

    @property
    def changes(self) -> Chain:
        """The own files that hold what some epochs changed."""
        return tuple(handle for handle in self.own if not handle.base)

    def missing(self, version: str) -> Chain | None:
        """The files a store at `version` lacks; None when it must be rebuilt from everything."""
        if version == self.version:
            return ()
        if version == Lineage(restored=self.restored).version and not (self.own and self.own[0].base):
            return self.own
        for index, handle in enumerate(self.own):
            if handle.name == version:
                return tuple(later for later in self.own[index + 1 :] if not later.base)
            if not handle.base and (version in handle.covers or (version and version == handle.follows)):
                return self.own[index:]
        return None

    def extended(self, *written: Handle) -> Lineage:
        """This lineage after the files of an epoch were accepted, bases first: each replaces what it covers."""
        after = self
        for handle in written:
            after = after._with_base(handle) if handle.base else after._with_changes(handle)
        return after._without_old_changes(written)

    def _with_changes(self, handle: Handle) -> Lineage:
        kept = tuple(old for old in self.own if old.name not in handle.covers)
        if handle.covers:  # a store that is still at a file which an older merge replaced is rebuilt
            kept = tuple(dataclasses.replace(old, covers=old.covers[-1:]) for old in kept)
        return Lineage(own=(*kept, handle), restored=self.restored)

    def _with_base(self, handle: Handle) -> Lineage:
        if handle.part is None or self.restored:  # what was restored is written anew as a whole
            return Lineage(own=(handle,))
        left = (_without(base, handle.part) for base in self.bases)
        bases = sorted((handle, *(base for base in left if base is not None)), key=_start)
        return Lineage(own=(*bases, *self.changes))

    def _without_old_changes(self, written: Chain) -> Lineage:
        """Without the changes that every base holds. Those of the last epoch stay: stores come to it by them."""
        bases, changes = self.bases, self.changes
        if not covered(bases):
            return self
        oldest = min(base.epoch for base in bases)
        kept = [handle for handle in changes if handle.epoch > oldest or handle in written]
        if len(kept) == len(changes):
            return self
        if kept and kept[0] not in written:
            kept[0] = dataclasses.replace(kept[0], follows=changes[len(changes) - len(kept) - 1].name)
        return dataclasses.replace(self, own=(*bases, *kept))

    @property
    def handles(self) -> Chain:
        """Every file needed to rebuild the state."""
        return (*(handle for _, chain in self.restored for handle in chain), *self.own)


def covered(bases: Chain) -> bool:
    """Whether bases that are parts hold all key groups of their subtask."""
    parts = [base.part for base in bases if base.part is not None]
    return bool(parts) and sum(len(part.groups) for part in parts) == len(parts[0].of)


def _start(base: Handle) -> int:
    assert base.part is not None
    return base.part.groups.start


def _without(base: Handle, taken: Part) -> Handle | None:
    """A base after some of its key groups were written anew, None when none is left; they are taken from its front."""
    had = base.part or Part(taken.of, taken.of, taken.of)
    groups = had.groups
    if not groups.intersects(taken.groups):
        return base
    if taken.groups.start > groups.start:
        problem = f"part {taken.groups} would leave two pieces of {base.name}, which counts for {groups}"
        raise InternalError(problem)
    left = KeyGroupRange(taken.groups.end + 1, groups.end)
    return dataclasses.replace(base, part=dataclasses.replace(had, groups=left)) if len(left) else None
