"""A sink that drops all records."""

from millstream.connectors.blackhole import BlackHoleSink

__all__ = ["BlackHoleSink"]
