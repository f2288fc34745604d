"""PyFlink's module of this name: watermark strategies, from `millstream.model.watermarks`."""

from __future__ import annotations

from millstream.model.watermarks import TimestampAssigner, WatermarkStrategy

__all__ = ["TimestampAssigner", "WatermarkStrategy"]
