"""Simulated storage: files in memory, faults, power loss."""
