"""What a slot may use: amounts of memory, and the named resources of a slot sharing group.

Promises: both are immutable values; a group either says all it needs (CPU and heap at least) or nothing.
Does not know: who provides the resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from millstream.config.configuration import MemorySize as Bytes
from millstream.errors import UserError


class InvalidResource(UserError, ValueError):
    """An amount of a resource that makes no sense."""

    def __init__(self, resource: str, value: object, rule: str) -> None:
        self.resource, self.value, self.rule = resource, value, rule
        super().__init__(f"{resource} must be {rule}, not {value}")


class IncompleteResources(UserError, ValueError):
    """A slot sharing group that names some resources but not the necessary ones."""

    hint = "set cpu cores and task heap memory too, or no resource at all"

    def __init__(self, group: str) -> None:
        self.group = group
        super().__init__(f"slot sharing group {group!r} names resources without cpu cores and task heap memory")


class MemorySize(Bytes):
    """A number of bytes, seen in any unit (1 kb is 1024 bytes)."""

    def __new__(cls, bytes_size: int = 0) -> Self:
        """As many bytes."""
        if bytes_size < 0:
            raise InvalidResource(resource="a memory size", value=bytes_size, rule="zero or positive")
        return super().__new__(cls, bytes_size)

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        """As many times 1024 * 1024 bytes."""
        return MemorySize(mebi_bytes << 20)

    def get_bytes(self) -> int:
        """In bytes."""
        return int(self)

    def get_kibi_bytes(self) -> int:
        """In whole kibibytes."""
        return int(self) >> 10

    def get_mebi_bytes(self) -> int:
        """In whole mebibytes."""
        return int(self) >> 20

    def get_gibi_bytes(self) -> int:
        """In whole gibibytes."""
        return int(self) >> 30

    def get_tebi_bytes(self) -> int:
        """In whole tebibytes."""
        return int(self) >> 40

    # as int compares; a subclass that says so has PyFlink's parameter names
    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __lt__(self, other: int) -> bool:
        return int.__lt__(self, other)

    def __le__(self, other: int) -> bool:
        return int.__le__(self, other)


@dataclass(frozen=True)
class SlotSharingGroup:
    """Operators of one group may share a slot; resources are those of each such slot. Made by `builder(name)`."""

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: tuple[tuple[str, float], ...] = ()

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Start a group of that name, without resources."""
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """The name."""
        return self.name

    def get_managed_memory(self) -> MemorySize | None:
        """Memory for state and sorting; None where the group names no resources."""
        return self.managed_memory

    def get_task_heap_memory(self) -> MemorySize | None:
        """Memory for user code; None where the group names no resources."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Memory for user code outside the heap; None where the group names no resources."""
        return self.task_off_heap_memory

    def get_cpu_cores(self) -> float | None:
        """CPU cores; None where the group names no resources."""
        return self.cpu_cores

    def get_external_resources(self) -> Mapping[str, float]:
        """Amounts of other resources, by name."""
        return dict(self.external_resources)

    @dataclass
    class Builder:
        """Collects the resources of a group."""

        name: str
        _cpu_cores: float | None = None
        _task_heap_memory: MemorySize | None = None
        _task_off_heap_memory: MemorySize | None = None
        _managed_memory: MemorySize | None = None
        _external_resources: dict[str, float] = field(default_factory=dict)

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            """CPU cores; positive."""
            if cpu_cores <= 0:
                raise InvalidResource(resource="cpu cores", value=cpu_cores, rule="positive")
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory for user code; positive."""
            if task_heap_memory.get_bytes() <= 0:
                raise InvalidResource(resource="task heap memory", value=task_heap_memory, rule="positive")
            self._task_heap_memory = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory for user code, in mebibytes."""
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory for user code outside the heap."""
            self._task_off_heap_memory = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory for user code outside the heap, in mebibytes."""
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Memory for state and sorting."""
            self._managed_memory = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Memory for state and sorting, in mebibytes."""
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """An amount of another resource; replaces the one of that name."""
            if value < 0:
                raise InvalidResource(resource=f"external resource {name}", value=value, rule="zero or positive")
            self._external_resources[name] = float(value)
            return self

        def build(self) -> SlotSharingGroup:
            """The group; memory not set is none, where any resource is set."""
            given = (self._cpu_cores, self._task_heap_memory, self._task_off_heap_memory, self._managed_memory)
            if all(part is None for part in given) and not self._external_resources:
                return SlotSharingGroup(self.name)
            if self._cpu_cores is None or self._task_heap_memory is None:
                raise IncompleteResources(self.name)
            return SlotSharingGroup(
                self.name,
                self._cpu_cores,
                self._task_heap_memory,
                self._task_off_heap_memory or MemorySize(0),
                self._managed_memory or MemorySize(0),
                tuple(sorted(self._external_resources.items())),
            )
