"""PyFlink's module of this name: CompletableFuture, from `millstream.model.futures`."""

from __future__ import annotations

from millstream.model.futures import CompletableFuture

__all__ = ["CompletableFuture"]
