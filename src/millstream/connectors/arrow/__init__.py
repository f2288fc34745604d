"""Arrow data as a source: arrays that are part of the program, and files that were written for a job."""

from millstream.connectors.arrow.batches import ArrowSource
from millstream.connectors.arrow.files import ArrowFilesSource

__all__ = ["ArrowFilesSource", "ArrowSource"]
