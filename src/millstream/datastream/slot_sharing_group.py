"""PyFlink's `datastream.slot_sharing_group`: which operators share a slot, and what a slot may use."""

from millstream.config.memory_size import MemorySize
from millstream.config.resources import SlotSharingGroup

__all__ = ["MemorySize", "SlotSharingGroup"]
