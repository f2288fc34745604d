"""Sinks whose output can be compared, and the comparison."""
