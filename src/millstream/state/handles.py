"""Handles of state files, and the lineages that they form.

Promises: a lineage lists accepted files: bases in the order of their key groups, then deltas, oldest first. From its
version alone, a store knows which of these files it lacks, or that it must be rebuilt. A delta leaves the lineage as
soon as every key group has a base that includes it, and not before.
Does not know: the content of files, or where they are stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from millstream.errors import InternalError
from millstream.state.key_groups import MAX_PARALLELISM_LIMIT, KeyGroupRange


@dataclass(frozen=True, slots=True)
class Part:
    """The key groups of a base that does not hold all key groups of its subtask. The file was written with the key
    groups `written`; of these, `groups` are still valid, and newer parts hold the others. `of` are all key groups of
    the subtask. Tables without key groups are in the first part, except chunks of many keys, which can be in any part:
    `chunks` says whether this part has some."""

    groups: KeyGroupRange
    written: KeyGroupRange
    of: KeyGroupRange
    chunks: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the part as a JSON value."""
        ranges = {"groups": self.groups, "written": self.written, "of": self.of}
        data: dict[str, Any] = {name: [groups.start, groups.end] for name, groups in ranges.items()}
        return {**data, "chunks": True} if self.chunks else data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Part:
        """Return the inverse of `to_json`."""
        groups, written, of = (KeyGroupRange(*map(int, data[name])) for name in ("groups", "written", "of"))
        is_valid = 0 <= of.start <= written.start <= groups.start <= groups.end <= written.end <= of.end
        if not is_valid or of.end >= MAX_PARALLELISM_LIMIT:
            problem = f"{dict(data)} does not describe a part of a base"
            raise ValueError(problem)
        return cls(groups, written, of, bool(data.get("chunks")))


@dataclass(frozen=True, slots=True)
class Handle:
    """One state file of one operator subtask: a base or a delta.

    `covers` names the files that were merged into this one; of an older compaction only the last name is kept, because
    handles travel with every epoch. `pack` is the file that holds this one together with others, and `offset` its
    offset there; the name stays, because stores use it as their version. A base with a `part` holds some key groups
    only. `follows` is the version before this delta, if the lineage no longer has the file of that name."""

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

    def __reduce__(self) -> tuple[type[Handle], tuple[Any, ...]]:
        """Pickle by position, as handles are a large part of every request."""
        return Handle, _values_of_handle(self)

    @property
    def weight(self) -> int:
        """The bytes of the key groups that are still valid, estimated by their number."""
        if self.part is None:
            return self.size
        return self.size * len(self.part.groups) // len(self.part.written)

    @property
    def file(self) -> str:
        """The name of the file on storage that holds this one."""
        return self.pack or self.name

    def to_json(self) -> dict[str, Any]:
        """Return the handle as a JSON value."""
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
        """Return the inverse of `to_json`."""
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


_values_of_handle: Callable[[Handle], tuple[Any, ...]] = attrgetter(*Handle.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Lineage:
    """All state files of one operator subtask.

    `restored` holds (subtask index, files) of the subtasks that wrote the state, if that was at another parallelism.
    `own` holds the files that this subtask wrote since then."""

    own: Chain = ()
    restored: tuple[tuple[int, Chain], ...] = ()
    _size: int = field(default=-1, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[Lineage], tuple[Any, ...]]:
        """Pickle by position, as lineages are a large part of every request."""
        return Lineage, (self.own, self.restored)

    @property
    def version(self) -> str:
        """The name of the last accepted file; "" for no state at all."""
        if self.own:
            return self.own[-1].name
        return "+".join(chain[-1].name for _, chain in self.restored if chain)

    @property
    def size(self) -> int:
        """The bytes of the key groups that are still valid in all files."""
        if self._size < 0:
            object.__setattr__(self, "_size", sum(handle.weight for handle in self.handles))
        return self._size

    @property
    def bases(self) -> Chain:
        """The bases among the files of this subtask."""
        return tuple(handle for handle in self.own if handle.base)

    @property
    def deltas(self) -> Chain:
        """The deltas among the files of this subtask."""
        return tuple(handle for handle in self.own if not handle.base)

    def missing(self, version: str) -> Chain | None:
        """Return the files that a store at `version` lacks; None if it must be rebuilt from all files."""
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

    def extend(self, *written: Handle) -> Lineage:
        """Return the lineage after the files of an epoch were accepted, bases first.

        Each replaces the files it covers."""
        after = self
        for handle in written:
            after = after._add_base(handle) if handle.base else after._add_delta(handle)
        return after._drop_old_deltas(written)

    def _add_delta(self, handle: Handle) -> Lineage:
        if not handle.covers:
            extended = Lineage(own=(*self.own, handle), restored=self.restored)
            object.__setattr__(extended, "_size", self.size + handle.weight)
            return extended
        kept = (old for old in self.own if old.name not in handle.covers)
        # a store at a version that an older compaction replaced is rebuilt
        kept = (dataclasses.replace(old, covers=old.covers[-1:]) for old in kept)
        return Lineage(own=(*kept, handle), restored=self.restored)

    def _add_base(self, handle: Handle) -> Lineage:
        if handle.part is None or self.restored:  # restored state is rewritten as one complete base
            return Lineage(own=(handle,))
        remaining = (_remove_groups(base, handle.part) for base in self.bases)
        bases = sorted((handle, *(base for base in remaining if base is not None)), key=_first_group)
        return Lineage(own=(*bases, *self.deltas))

    def _drop_old_deltas(self, written: Chain) -> Lineage:
        """Drop the deltas that all bases include. The delta of the last epoch stays: stores advance with it."""
        if not self.own or self.own[0].part is None:  # bases are first, and none of them is a part
            return self
        bases, deltas = self.bases, self.deltas
        if not is_complete(bases):
            return self
        oldest = min(base.epoch for base in bases)
        kept = [handle for handle in deltas if handle.epoch > oldest or handle in written]
        if len(kept) == len(deltas):
            return self
        if kept and kept[0] not in written:
            kept[0] = dataclasses.replace(kept[0], follows=deltas[len(deltas) - len(kept) - 1].name)
        return dataclasses.replace(self, own=(*bases, *kept))

    @property
    def handles(self) -> Chain:
        """All files that are needed to rebuild the state."""
        return (*(handle for _, chain in self.restored for handle in chain), *self.own)


def is_complete(bases: Chain) -> bool:
    """Whether bases in parts hold all key groups of their subtask."""
    parts = [base.part for base in bases if base.part is not None]
    return bool(parts) and sum(len(part.groups) for part in parts) == len(parts[0].of)


def _first_group(base: Handle) -> int:
    assert base.part is not None
    return base.part.groups.start


def _remove_groups(base: Handle, newer: Part) -> Handle | None:
    """The base without the key groups of a newer part, which are its first ones; None if no key group remains."""
    part = base.part or Part(newer.of, newer.of, newer.of)
    groups = part.groups
    if not groups.intersects(newer.groups):
        return base
    if newer.groups.start > groups.start:
        problem = f"part {newer.groups} would split the valid key groups {groups} of {base.name} in two"
        raise InternalError(problem)
    remaining = KeyGroupRange(newer.groups.end + 1, groups.end)
    return dataclasses.replace(base, part=dataclasses.replace(part, groups=remaining)) if len(remaining) else None
