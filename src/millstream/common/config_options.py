"""PyFlink's module of this name: options and their builder, from `millstream.model.configuration`."""

from __future__ import annotations

from millstream.model.configuration import ConfigOption, ConfigOptions

__all__ = ["ConfigOption", "ConfigOptions"]
