"""The memory of an operator's subtask: values that it keeps from epoch to epoch, beside its state.

Memory is small and part of every request and every report. `SubtaskMemory` is the value in reports, and that
checkpoints hold. `OperatorMemory` is what an operator works with while an epoch runs. An operator that remembers more
than its watermark declares a subclass of `MemoryPart` for it, under a name of its own.

Promises: memory has a JSON form with a version; a version that this release does not know is refused. Memory of release
0.1, which had no version, is read by the keys that each part declares.
Does not know: which operators exist, what their parts mean, how memory is sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

from millstream.errors import ExternalError
from millstream.event_time.watermarks import MIN_WATERMARK

VERSION = 1
_part_types: dict[str, type[MemoryPart]] = {}
_NO_PARTS: Mapping[str, Mapping[str, Any]] = {}


class UnreadableMemory(ExternalError):
    """Memory of an operator that this release cannot read."""

    hint = "use the release that wrote it, or a later one"


class MemoryPart:
    """Base of the dataclasses that operators remember. Fields are JSON values and have defaults.

    `part_name` is the name in the JSON form. `unversioned_keys` maps the keys of release 0.1 to fields."""

    part_name: ClassVar[str]
    version: ClassVar[int] = 1
    unversioned_keys: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        if "part_name" in cls.__dict__:
            _part_types[cls.part_name] = cls

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form. It shares lists and dictionaries with this part."""
        return {"version": self.version, **vars(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return a part that shares nothing with `data`."""
        _check_version(f"part '{cls.part_name}' of the memory of an operator", data["version"], cls.version)
        return cls.from_fields({name: value for name, value in data.items() if name != "version"})

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Create a part from JSON values by field; lists and dictionaries are copied."""
        return cls(**{name: value.copy() if type(value) in (list, dict) else value for name, value in fields.items()})

    @classmethod
    def take_unversioned(cls, memory: dict[str, Any]) -> Self:
        """Create a part from a memory of release 0.1, and remove its keys there."""
        fields = {field: memory.pop(key) for key, field in cls.unversioned_keys.items() if key in memory}
        return cls.from_fields(fields)

    @classmethod
    def redistribute(cls, parts: Sequence[Self], parallelism: int) -> Sequence[Self] | None:
        """Return the parts of `parallelism` new subtasks from those of all old ones; None to begin without memory."""

    def reset_event_time(self) -> None:
        """Forget that event time came to its end: the job continues from a savepoint that was drained."""


Part = TypeVar("Part", bound=MemoryPart)


@dataclass(frozen=True)
class SubtaskMemory:
    """The memory of one subtask of one operator, between two epochs.

    `watermark` is the last one that arrived, None before the first. `emitted_watermark` is the last one that went
    downstream, None if the operator is idle. `restored` says that no epoch has run since a restore: downstream channels
    do not know the last watermark. `has_union_state` says that a restore must give every subtask the elements of all.
    `parts` holds the JSON forms of parts by name, `unversioned` what is left of a memory of release 0.1."""

    watermark: int | None = None
    emitted_watermark: int | None = MIN_WATERMARK
    ended: bool = False
    restored: bool = False
    has_union_state: bool = False
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _NO_PARTS)
    unversioned: Mapping[str, Any] = field(default_factory=lambda: _NO_PARTS)

    def part(self, part_type: type[Part]) -> Part:
        """Return a part, with the defaults of its type if nothing was remembered."""
        name = part_type.part_name
        data = self.parts.get(name)
        try:
            if data is not None:
                return part_type.from_json(data)
            return part_type.take_unversioned(dict(self.unversioned)) if self.unversioned else part_type()
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            message = f"part '{name}' of the memory of an operator is not what this release writes: {problem!r}"
            raise UnreadableMemory(message) from problem

    def with_parts(self, parts: Iterable[MemoryPart]) -> SubtaskMemory:
        """Return this memory with other values of some parts. Parts that equal their defaults are left out."""
        encoded, unversioned = self._encode(parts)
        return dataclasses.replace(self, parts=encoded, unversioned=unversioned)

    def _encode(self, parts: Iterable[MemoryPart]) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, Any]]:
        """Return `parts` and `unversioned` with other values of some parts."""
        encoded = dict(self.parts)
        unversioned = dict(self.unversioned)
        for part in parts:
            encoded.pop(part.part_name, None)
            if part != type(part)():
                encoded[part.part_name] = part.to_json()
            if unversioned:
                part.take_unversioned(unversioned)
        return encoded, unversioned

    def without_event_time(self) -> SubtaskMemory:
        """Return the memory of a drained operator as that of one whose event time has not begun."""
        parts = [self.part(part_type) for part_type in self._known_parts()]
        for part in parts:
            part.reset_event_time()
        memory = dataclasses.replace(self, watermark=None, emitted_watermark=MIN_WATERMARK, ended=False)
        return memory.with_parts(parts)

    def _known_parts(self) -> list[type[MemoryPart]]:
        """Return the types of the parts in this memory, as far as this process has imported them."""
        return [
            part_type
            for name, part_type in _part_types.items()
            if name in self.parts or not self.unversioned.keys().isdisjoint(part_type.unversioned_keys)
        ]

    def check(self) -> None:
        """Refuse values that no release writes, and parts that this release cannot read."""
        watermarks, flags = (self.watermark, self.emitted_watermark), (self.ended, self.restored, self.has_union_state)
        is_valid = all(watermark is None or type(watermark) is int for watermark in watermarks) and all(
            type(flag) is bool for flag in flags
        )
        is_valid = (
            is_valid and isinstance(self.parts, dict) and all(isinstance(part, dict) for part in self.parts.values())
        )
        if not is_valid or not isinstance(self.unversioned, dict):
            message = f"the memory of an operator is not what this release writes: {self}"
            raise UnreadableMemory(message)
        for part_type in self._known_parts():
            self.part(part_type)

    def to_json(self) -> dict[str, Any]:
        """Return the memory as plain values; fields that equal their defaults are left out."""
        data: dict[str, Any] = {"version": VERSION}
        if self.watermark is not None:
            data["watermark"] = self.watermark
        if self.emitted_watermark != MIN_WATERMARK:
            data["emitted_watermark"] = self.emitted_watermark
        for name in ("ended", "restored", "has_union_state"):
            if getattr(self, name):
                data[name] = True
        if self.parts:
            data["parts"] = self.parts
        if self.unversioned:
            data["unversioned"] = self.unversioned
        return data

    @classmethod
    def from_json(cls, data: Any) -> SubtaskMemory:
        """Return the memory that `to_json` or release 0.1 wrote."""
        try:
            version = data.get("version", 0)
            if version == 0:
                return _read_unversioned(data)
            _check_version("the memory of an operator", version, VERSION)
            return cls(**{name: value for name, value in data.items() if name != "version"})
        except (TypeError, AttributeError) as problem:
            message = f"the memory of an operator is not what this release writes: {problem!r}"
            raise UnreadableMemory(message) from problem


_KEYS_OF_RELEASE_0_1 = {
    "watermark": "watermark",
    "said": "emitted_watermark",
    "ended": "ended",
    "restored": "restored",
    "union": "has_union_state",
}


def _read_unversioned(data: Mapping[str, Any]) -> SubtaskMemory:
    """Read memory of release 0.1: one dictionary for the task and for all parts of the operator."""
    fields = {_KEYS_OF_RELEASE_0_1[key]: value for key, value in data.items() if key in _KEYS_OF_RELEASE_0_1}
    unknown_keys = {key: value for key, value in data.items() if key not in _KEYS_OF_RELEASE_0_1}
    return SubtaskMemory(**fields, unversioned=unknown_keys)


def _check_version(subject: str, version: Any, newest: int) -> None:
    if type(version) is not int or not 1 <= version <= newest:
        message = f"{subject} has version {version!r}, this release reads up to {newest}"
        raise UnreadableMemory(message)


def redistribute(memories: Sequence[SubtaskMemory], parallelism: int) -> tuple[SubtaskMemory, ...]:
    """Return the memory of `parallelism` new subtasks from that of all old ones.

    The watermark is the least one, and there is none if an old subtask had none. Each part decides how it is
    distributed. A part whose type this process has not imported belongs to no operator of the program: it is
    dropped."""
    arrived = [memory.watermark for memory in memories]
    emitted = [memory.emitted_watermark for memory in memories]
    merged = SubtaskMemory(
        watermark=None if None in arrived else min((mark for mark in arrived if mark is not None), default=None),
        emitted_watermark=min((mark for mark in emitted if mark is not None), default=None),
        ended=all(memory.ended for memory in memories),
    )
    parts_by_subtask: list[list[MemoryPart]] = [[] for _ in range(parallelism)]
    for part_type in dict.fromkeys(part_type for memory in memories for part_type in memory._known_parts()):
        parts = part_type.redistribute([memory.part(part_type) for memory in memories], parallelism)
        for subtask_parts, part in zip(parts_by_subtask, parts or (), strict=False):
            subtask_parts.append(part)
    return tuple(merged.with_parts(subtask_parts) for subtask_parts in parts_by_subtask)


class OperatorMemory:
    """The memory of one operator while an epoch runs: fields and parts may be changed; `snapshot` freezes them."""

    __slots__ = ("_before", "_parts", "emitted_watermark", "ended", "has_union_state", "restored", "watermark")

    def __init__(self, before: SubtaskMemory | None = None) -> None:
        before = before or SubtaskMemory()
        self._before = before
        self._parts: dict[type[MemoryPart], MemoryPart] = {}
        self.watermark = before.watermark
        self.emitted_watermark = before.emitted_watermark
        self.ended = before.ended
        self.restored = before.restored
        self.has_union_state = before.has_union_state

    def part(self, part_type: type[Part]) -> Part:
        """Return a part; what the operator changes in it is remembered."""
        part = self._parts.get(part_type)
        if part is None:
            part = self._parts[part_type] = self._before.part(part_type)
        return part  # type: ignore[return-value]

    def snapshot(self) -> SubtaskMemory:
        """Return the memory as the next epoch needs it."""
        return SubtaskMemory(
            self.watermark,
            self.emitted_watermark,
            self.ended,
            self.restored,
            self.has_union_state,
            *self._before._encode(self._parts.values()),
        )
