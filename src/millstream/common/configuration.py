"""PyFlink's module of this name: Configuration, from `millstream.config.configuration`."""

from __future__ import annotations

from millstream.config.configuration import Configuration

__all__ = ["Configuration"]
