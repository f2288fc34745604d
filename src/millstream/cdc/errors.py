"""The error of a pipeline that is wrong."""

from __future__ import annotations

from millstream.errors import UserError


class InvalidPipeline(UserError):
    """A pipeline definition is wrong, or needs something that is not supported."""
