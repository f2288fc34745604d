"""A pipeline definition: the YAML file as values.

Promises: an unknown key is refused, with its block and the most similar name; types are checked.
Does not know: databases, tables, SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from millstream.cdc.errors import InvalidPipeline

BEHAVIORS = ("lenient", "ignore", "exception")
_TYPE, _NAME = "type", "name"
_BLOCKS = ("source", "sink", "route", "transform", "pipeline")
_ROUTE_KEYS = ("source-table", "sink-table", "replace-symbol", "description")
_TRANSFORM_KEYS = ("source-table", "projection", "filter", "primary-keys", "description")
_PIPELINE_KEYS = ("name", "parallelism", "local-time-zone", "schema.change.behavior")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The source or the sink: its type, and its options."""

    type: str
    name: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Route:
    """Tables whose names match `source_table` are written to `sink_table`, in which `symbol` stands for their name."""

    source_table: str
    sink_table: str
    symbol: str | None = None


@dataclass(frozen=True, slots=True)
class Transform:
    """The columns and rows of matching tables that are written; `projection` and `filter` are SQL."""

    source_table: str
    projection: str | None = None
    filter: str | None = None
    primary_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A whole definition. `behavior` says what happens when columns change: one of `BEHAVIORS`."""

    source: Endpoint
    sink: Endpoint
    routes: tuple[Route, ...] = ()
    transforms: tuple[Transform, ...] = ()
    name: str = "millstream cdc"
    parallelism: int | None = None
    time_zone: str | None = None
    behavior: str = "lenient"


def read_pipeline(path: str | Path) -> Pipeline:
    """Read the definition in a file.

    Args:
        path: The YAML file.

    Returns:
        The definition.

    Raises:
        InvalidPipeline: If the file cannot be read, or a block, key or value in it is wrong.

    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as problem:
        message = f"{path} cannot be read: {problem}"
        raise InvalidPipeline(message) from problem
    return parse_pipeline(content)


def parse_pipeline(content: Any) -> Pipeline:
    """Return the definition in the content of a YAML file."""
    blocks = _mapping(content, "the pipeline definition")
    _check_keys(blocks, _BLOCKS, "the pipeline definition")
    settings = _mapping(blocks.get("pipeline") or {}, "the block pipeline")
    _check_keys(settings, _PIPELINE_KEYS, "the block pipeline")
    behavior = str(settings.get("schema.change.behavior", "lenient")).lower()
    if behavior not in BEHAVIORS:
        message = f"schema.change.behavior does not accept {behavior!r}"
        raise InvalidPipeline(
            message, hint=f"use one of {', '.join(BEHAVIORS)}; columns of the sink are added, and never dropped"
        )
    parallelism = settings.get("parallelism")
    if parallelism is not None and not (type(parallelism) is int and parallelism > 0):
        message = f"parallelism must be a positive integer, not {parallelism!r}"
        raise InvalidPipeline(message)
    zone = settings.get("local-time-zone")
    return Pipeline(
        _endpoint(blocks, "source"),
        _endpoint(blocks, "sink"),
        tuple(_route(entry) for entry in _sequence(blocks.get("route"), "route")),
        tuple(_transform(entry) for entry in _sequence(blocks.get("transform"), "transform")),
        str(settings.get(_NAME, "millstream cdc")),
        parallelism,
        None if zone is None else str(zone),
        behavior,
    )


def _endpoint(blocks: Mapping[str, Any], block: str) -> Endpoint:
    if block not in blocks:
        message = f"the block {block} is missing"
        raise InvalidPipeline(message, hint=f"add {block}: with its type and options")
    options = {key: _text(value) for key, value in _mapping(blocks[block], f"the block {block}").items()}
    if _TYPE not in options:
        message = f"the block {block} has no type"
        raise InvalidPipeline(message)
    return Endpoint(options.pop(_TYPE), options.pop(_NAME, block), options)


def _route(entry: Any) -> Route:
    values = _entry(entry, "route", _ROUTE_KEYS, ("source-table", "sink-table"))
    return Route(values["source-table"], values["sink-table"], values.get("replace-symbol"))


def _transform(entry: Any) -> Transform:
    values = _entry(entry, "transform", _TRANSFORM_KEYS, ("source-table",))
    keys = tuple(key.strip() for key in values.get("primary-keys", "").split(",") if key.strip())
    return Transform(values["source-table"], values.get("projection"), values.get("filter"), keys)


def _entry(entry: Any, block: str, known: Sequence[str], required: Sequence[str]) -> dict[str, str]:
    location = f"an entry of the block {block}"
    values = {key: _text(value) for key, value in _mapping(entry, location).items()}
    _check_keys(values, known, location)
    for key in required:
        if key not in values:
            message = f"{location} has no {key}"
            raise InvalidPipeline(message)
    return values


def _check_keys(values: Mapping[str, Any], known: Sequence[str], location: str) -> None:
    for key in values:
        if key not in known:
            nearest = get_close_matches(key, known, 1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"it can have {', '.join(known)}"
            message = f"{location} has the key {key}, which is not supported"
            raise InvalidPipeline(message, hint=hint)


def _mapping(value: Any, location: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        message = f"{location} must be a mapping of keys and values, not {value!r}"
        raise InvalidPipeline(message)
    return {str(key): entry for key, entry in value.items()}


def _sequence(value: Any, block: str) -> Sequence[Any]:
    if value is None:
        return ()
    if not isinstance(value, list):
        message = f"the block {block} must be a list"
        raise InvalidPipeline(message, hint="begin each entry with '- source-table:'")
    return value


def _text(value: Any) -> str:
    """Return the text of an option; YAML reads `true` and numbers as such."""
    return str(value).lower() if isinstance(value, bool) else str(value)
