"""Names of classes in stored bytes.

Promises: a class of millstream keeps its name in stored bytes when its module moves, so that checkpoints and savepoints
of earlier releases can be read, and keys are encoded to the same bytes.
Does not know: how values are encoded."""

from __future__ import annotations

NAME_ATTRIBUTE = "__millstream_name__"

GLOBAL_WINDOW = "millstream.model.windows:GlobalWindow"

# The names of release 0.1.0, and where the classes are now. An entry never changes its first part.
OWN_CLASSES = {
    "millstream.model.bitmap:Bitmap": "millstream.types.bitmap:Bitmap",
    "millstream.model.functions.join:TaggedUnion": "millstream.functions.join:TaggedUnion",
    "millstream.model.row:Row": "millstream.types.row:Row",
    "millstream.model.row:RowKind": "millstream.types.row:RowKind",
    "millstream.model.windows:CountWindow": "millstream.windows.window:CountWindow",
    GLOBAL_WINDOW: "millstream.windows.window:GlobalWindow",
    "millstream.model.windows:TimeWindow": "millstream.windows.window:TimeWindow",
    "millstream.table.data_view:ListView": "millstream.table.data_view:ListView",
    "millstream.table.data_view:MapView": "millstream.table.data_view:MapView",
}
_STORED = {path: name for name, path in OWN_CLASSES.items()}

# The module that stored pickles name for `build`, the only function of ours that they call.
CODEC_MODULE = "millstream.model.codec"


def name_of(cls: type) -> str:
    """Return the name of a class in stored bytes: as a rule its module and qualified name."""
    path = f"{cls.__module__}:{cls.__qualname__}"
    return str(vars(cls).get(NAME_ATTRIBUTE) or _STORED.get(path, path))
