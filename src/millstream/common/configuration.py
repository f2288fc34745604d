"""PyFlink's module of this name: Configuration, from `millstream.model.configuration`."""

from __future__ import annotations

from millstream.model.configuration import Configuration

__all__ = ["Configuration"]
