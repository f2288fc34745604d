"""PyFlink's module of this name: CompletableFuture, from `millstream.job.futures`."""

from __future__ import annotations

from millstream.job.futures import CompletableFuture

__all__ = ["CompletableFuture"]
