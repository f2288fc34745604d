"""A sink that keeps nothing."""

from millstream.connectors.blackhole import BlackHoleSink

__all__ = ["BlackHoleSink"]
