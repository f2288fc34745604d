"""The resources of a slot sharing group.

Promises: an immutable value; a group names all that it needs (at least CPU and heap) or nothing.
Does not know: who provides the resources."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.config.memory_size import MemorySize
from millstream.errors import UserError


class InvalidResource(UserError, ValueError):
    """An invalid amount of a resource."""

    def __init__(self, resource: str, value: object, rule: str) -> None:
        self.resource, self.value, self.rule = resource, value, rule
        super().__init__(f"{resource} must be {rule}, not {value}")


class IncompleteResources(UserError, ValueError):
    """A slot sharing group has resources, but not the required ones."""

    hint = "set cpu cores and task heap memory, too, or no resource at all"

    def __init__(self, group: str) -> None:
        self.group = group
        super().__init__(f"slot sharing group {group!r} has resources, but no cpu cores or no task heap memory")


@dataclass(frozen=True)
class SlotSharingGroup:
    """Operators of one group may share a slot; the resources are those of each slot. Use `builder(name)` to create
    one.

    Example:
        >>> group = SlotSharingGroup.builder("heavy").set_cpu_cores(2.0).set_task_heap_memory_mb(512).build()
        >>> group.get_cpu_cores()
        2.0

    """

    name: str
    cpu_cores: float | None = None
    task_heap_memory: MemorySize | None = None
    task_off_heap_memory: MemorySize | None = None
    managed_memory: MemorySize | None = None
    external_resources: tuple[tuple[str, float], ...] = ()

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        """Create a builder of a group without resources.

        Args:
            name: The name of the group.

        """
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        """Return the name of the group."""
        return self.name

    def get_managed_memory(self) -> MemorySize | None:
        """Return the memory for state and sorting; None if the group has no resources."""
        return self.managed_memory

    def get_task_heap_memory(self) -> MemorySize | None:
        """Return the memory for user code; None if the group has no resources."""
        return self.task_heap_memory

    def get_task_off_heap_memory(self) -> MemorySize | None:
        """Return the memory for user code outside the heap; None if the group has no resources."""
        return self.task_off_heap_memory

    def get_cpu_cores(self) -> float | None:
        """Return the CPU cores; None if the group has no resources."""
        return self.cpu_cores

    def get_external_resources(self) -> Mapping[str, float]:
        """Return the amounts of other resources, by name."""
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
            """Set the CPU cores; positive.

            Args:
                cpu_cores: The number of cores; it can be a fraction.

            """
            if cpu_cores <= 0:
                raise InvalidResource(resource="cpu cores", value=cpu_cores, rule="positive")
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(self, task_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the memory for user code; positive.

            Args:
                task_heap_memory: The size.

            """
            if task_heap_memory.get_bytes() <= 0:
                raise InvalidResource(resource="task heap memory", value=task_heap_memory, rule="positive")
            self._task_heap_memory = task_heap_memory
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the memory for user code, in mebibytes.

            Args:
                task_heap_memory_mb: The number of mebibytes.

            """
            return self.set_task_heap_memory(MemorySize.of_mebi_bytes(task_heap_memory_mb))

        def set_task_off_heap_memory(self, task_off_heap_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the memory for user code outside the heap.

            Args:
                task_off_heap_memory: The size.

            """
            self._task_off_heap_memory = task_off_heap_memory
            return self

        def set_task_off_heap_memory_mb(self, task_off_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the memory for user code outside the heap, in mebibytes.

            Args:
                task_off_heap_memory_mb: The number of mebibytes.

            """
            return self.set_task_off_heap_memory(MemorySize.of_mebi_bytes(task_off_heap_memory_mb))

        def set_managed_memory(self, managed_memory: MemorySize) -> SlotSharingGroup.Builder:
            """Set the memory for state and sorting.

            Args:
                managed_memory: The size.

            """
            self._managed_memory = managed_memory
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            """Set the memory for state and sorting, in mebibytes.

            Args:
                managed_memory_mb: The number of mebibytes.

            """
            return self.set_managed_memory(MemorySize.of_mebi_bytes(managed_memory_mb))

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Set the amount of another resource.

            Args:
                name: The name of the resource, such as `gpu`.
                value: The amount.

            """
            if value < 0:
                raise InvalidResource(resource=f"external resource {name}", value=value, rule="zero or positive")
            self._external_resources[name] = float(value)
            return self

        def build(self) -> SlotSharingGroup:
            """Create the group; if any resource is set, memory that is not set is 0.

            Raises:
                IncompleteResources: CPU cores or task heap memory are missing.

            """
            amounts = (self._cpu_cores, self._task_heap_memory, self._task_off_heap_memory, self._managed_memory)
            if all(part is None for part in amounts) and not self._external_resources:
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


def merge_resources(resources: dict[str, str], group: SlotSharingGroup) -> dict[str, str]:
    """Return the amounts that a slot needs which runs one more group: the largest of each resource. CPU cores, by the
    name `cpus`, are whole."""
    needed = dict(group.external_resources)
    if group.cpu_cores is not None:
        needed["cpus"] = math.ceil(group.cpu_cores)
    largest = {name: max(float(resources.get(name, 0)), amount) for name, amount in needed.items()}
    return {**resources, **{name: f"{amount:g}" for name, amount in largest.items()}}
