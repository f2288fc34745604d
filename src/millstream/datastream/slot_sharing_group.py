"""PyFlink's `datastream.slot_sharing_group`: which operators share a slot, and what a slot may use."""

from millstream.config.resources import MemorySize, SlotSharingGroup

__all__ = ["MemorySize", "SlotSharingGroup"]
