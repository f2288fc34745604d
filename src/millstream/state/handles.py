"""What a snapshot leaves behind: names of files, and the chains they form.

Promises: a chain lists accepted files oldest first, and a store can tell from its own version alone
which of them it still lacks, or that it must start again.
Does not know: what is inside a file, or where files live."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Handle:
    """One state file of one operator subtask: a base (from epoch 0) or the changes of some epochs.

    `covers` names the files whose changes this one repeats, because it was compacted from them. A small file may have
    been packed with others into one: `pack` is that one's name, `offset` where this one begins in it. Its name stays:
    stores know it by that."""

    name: str
    size: int
    sha256: str
    epoch: int
    rows: int = 0
    base: bool = False
    covers: tuple[str, ...] = ()
    pack: str = ""
    offset: int = 0

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

    def missing(self, version: str) -> Chain | None:
        """The files a store at `version` lacks; None when it must be rebuilt from everything."""
        if version == self.version:
            return ()
        if version == Lineage(restored=self.restored).version and not (self.own and self.own[0].base):
            return self.own
        for index, handle in enumerate(self.own):
            if handle.name == version:
                return self.own[index + 1 :]
            if version in handle.covers and not handle.base:
                return self.own[index:]
        return None

    def extended(self, handle: Handle) -> Lineage:
        """This lineage after `handle` was accepted: it replaces what it covers."""
        if handle.base:
            return Lineage(own=(handle,))
        kept = tuple(old for old in self.own if old.name not in handle.covers)
        return Lineage(own=(*kept, handle), restored=self.restored)

    @property
    def handles(self) -> Chain:
        """Every file needed to rebuild the state."""
        return (*(handle for _, chain in self.restored for handle in chain), *self.own)
