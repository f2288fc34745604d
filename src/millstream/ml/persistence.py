"""Saved stages: a directory with JSON, and Parquet for model data.

Promises: the JSON file is written last, so a directory with it is complete; nothing in the files is executed, and only
classes that the program has imported are created.
Does not know: what stages do."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from millstream.errors import InvalidArgument
from millstream.files.locations import join_path
from millstream.files.remote import get_file_system
from millstream.ml.common.window import CountTumblingWindows, GlobalWindows

FORMAT = 1
_classes: dict[str, type] = {}


def register_class(stage_class: type) -> None:
    """Let a class of stages be loaded by its name."""
    _classes[_name_of(stage_class)] = stage_class


def _name_of(stage_class: type) -> str:
    return f"{stage_class.__module__}.{stage_class.__qualname__}"


def class_of(path: str, saved: Mapping[str, Any]) -> Any:
    """Return the class of a saved stage."""
    stage_class = _classes.get(saved["class"])
    if stage_class is None:
        msg = f"{path} contains a stage of the unknown class {saved['class']}"
        raise InvalidArgument(msg, hint="import the module of the class before loading")
    return stage_class


def check_class(path: str, saved: Mapping[str, Any], expected: type) -> None:
    """Raise if a saved stage has another class."""
    if saved["class"] != _name_of(expected):
        msg = f"{path} contains a {saved['class']}, not a {_name_of(expected)}"
        raise InvalidArgument(msg, hint="call load() of its class")


def check_new(path: str) -> None:
    """Raise if a directory contains a stage."""
    if get_file_system(path).exists(join_path(path, "metadata.json")):
        msg = f"{path} contains a stage already"
        raise InvalidArgument(msg, hint="save to another directory, or delete this one")


def write_stage(
    path: str,
    stage_class: type,
    params: Mapping[str, Any],
    data: Mapping[str, pa.Table],
    **more: Any,
) -> None:
    """Write a stage: tables first, then the metadata."""
    check_new(path)
    files = get_file_system(path)
    files.make_dirs(path)
    for name, table in data.items():
        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        files.write_bytes(join_path(path, f"{name}.parquet"), buffer.getvalue(), sync=True)
    encoded = {name: _encode_value(value) for name, value in params.items()}
    metadata = {"format": FORMAT, "class": _name_of(stage_class), "params": encoded, **more}
    files.write_bytes(join_path(path, "metadata.json"), json.dumps(metadata, indent=2).encode(), sync=True)


def read_stage(path: str) -> dict[str, Any]:
    """Return the metadata of a saved stage."""
    files, name = get_file_system(path), join_path(path, "metadata.json")
    if not files.exists(name):
        msg = f"{path} contains no saved stage"
        raise InvalidArgument(msg, hint="pass the directory that save() has created")
    try:
        metadata = json.loads(files.read_bytes(name))
        is_known = metadata["format"] == FORMAT and isinstance(metadata["params"], dict) and metadata["class"]
    except (ValueError, KeyError, TypeError) as problem:
        msg = f"{name} is damaged: {problem}"
        raise InvalidArgument(msg, hint="save the stage again") from None
    if not is_known:
        msg = f"{name} has format {metadata['format']!r}"
        raise InvalidArgument(msg, hint=f"this version reads format {FORMAT}")
    return metadata  # type: ignore[no-any-return]


def read_data(path: str, name: str) -> pa.Table:
    """Return a table of a saved stage."""
    data = get_file_system(path).read_bytes(join_path(path, f"{name}.parquet"))
    return pq.read_table(io.BytesIO(data))


def _encode_value(value: Any) -> Any:
    if isinstance(value, GlobalWindows):
        return {"windows": "global"}
    if isinstance(value, CountTumblingWindows):
        return {"windows": "count", "size": value.size}
    return value


def decode_value(value: Any) -> Any:
    """Return the value of a parameter from its JSON."""
    match value:
        case {"windows": "global"}:
            return GlobalWindows()
        case {"windows": "count", "size": int(size)}:
            return CountTumblingWindows(size)
    return value
