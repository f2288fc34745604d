"""PyFlink's `datastream.connectors.hybrid_source`: sources one after another."""

from millstream.connectors.hybrid import HybridSource, HybridSourceBuilder

__all__ = ["HybridSource", "HybridSourceBuilder"]
