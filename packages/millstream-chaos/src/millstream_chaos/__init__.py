"""Fault tests of millstream: `millstream chaos`, and the simulation that the project's own tests use."""

__version__ = "0.2.0"
