"""PyFlink's module of this name: options and their builder, from `millstream.config.configuration`."""

from __future__ import annotations

from millstream.config.configuration import ConfigOption, ConfigOptions

__all__ = ["ConfigOption", "ConfigOptions"]
