"""The schema registry of tests is shipped, so that users can have it too."""

from millstream.testing.schema_registry import Registry, registry, running_registry

__all__ = ["Registry", "registry", "running_registry"]
