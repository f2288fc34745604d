"""PyFlink's module of this name: watermark strategies, from `millstream.event_time.watermarks`."""

from __future__ import annotations

from millstream.event_time.watermarks import TimestampAssigner, WatermarkStrategy

__all__ = ["TimestampAssigner", "WatermarkStrategy"]
