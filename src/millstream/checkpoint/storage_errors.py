"""Errors of checkpoint storage: a number that is taken or void, and storage that cannot hold checkpoints.

Promises: each error names the file or directory, and the remedy where there is one.
Does not know: files that are missing or damaged; their errors are in `files.errors`."""

from __future__ import annotations

from millstream.errors import ExternalError, UserError


class CheckpointTaken(ExternalError):
    """A checkpoint with this number exists already."""

    hint = "another driver of the same job may have taken over"

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"there is a checkpoint {path} already")


class VoidCheckpoint(ExternalError):
    """The number of a checkpoint is void: the checkpoint was aborted before it was complete."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} marks a checkpoint that was never completed")


class NoConditionalWrites(UserError):
    """The storage lets a second writer replace what the first one created."""

    hint = "use a store that honours If-None-Match: * on PutObject, as Amazon S3 does, or a mounted file system"

    def __init__(self, root: str) -> None:
        self.root = root
        super().__init__(
            f"checkpoints cannot be kept in {root}: it replaces a file that was to be created only if absent, "
            "so that two drivers could overwrite each other's checkpoints"
        )
