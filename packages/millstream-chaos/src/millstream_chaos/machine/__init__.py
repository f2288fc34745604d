"""Faults and measurements of the machine: network, disk, memory, object store."""
