"""CREATE TABLE ... LIKE: the parts of a definition that are copied from another table.

Promises: Flink's defaults; a part that both tables define is an error, unless the statement says OVERWRITING.
Does not know: the other clauses of CREATE TABLE."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.catalog.catalog import Catalogs, ColumnDefinition, TableDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.syntax import tree as s

_FEATURES = ("CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_CAN_OVERWRITE = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")


def inherit_definition(catalogs: Catalogs, node: s.LikeClause) -> TableDefinition:
    """Return the parts of the other table that the new table gets."""
    _, source = catalogs.table(node.table, node.at)
    if not isinstance(source, TableDefinition):
        message = f"'{'.'.join(node.table)}' cannot be copied by LIKE, because it is not a table"
        raise SqlValidationError(message, at=node.at, hint="use CREATE TABLE ... AS SELECT to copy a view")
    strategies = _read_strategies(node)
    columns = tuple(
        column
        for column in source.columns
        if not (strategies["GENERATED"] == "EXCLUDING" and column.expr is not None)
        and not (strategies["METADATA"] == "EXCLUDING" and column.metadata_key is not None)
    )
    keeps_key = strategies["CONSTRAINTS"] != "EXCLUDING"
    return replace(
        source,
        columns=columns,
        options={} if strategies["OPTIONS"] == "EXCLUDING" else source.options,
        primary_key=source.primary_key if keeps_key else (),
        constraint=source.constraint if keeps_key else None,
        partitions=() if strategies["PARTITIONS"] == "EXCLUDING" else source.partitions,
        distribution=None if strategies["DISTRIBUTION"] == "EXCLUDING" else source.distribution,
        watermark=None if strategies["WATERMARKS"] == "EXCLUDING" else source.watermark,
    )


def _read_strategies(node: s.LikeClause | None) -> dict[str, str]:
    """Return INCLUDING, EXCLUDING or OVERWRITING for each feature of a table."""
    strategies = dict.fromkeys(_FEATURES, "INCLUDING") | {"OPTIONS": "OVERWRITING"}
    options = () if node is None else node.options
    for strategy, feature in options:
        if feature == "ALL":
            strategies.update(dict.fromkeys(_FEATURES, strategy))
        elif feature not in _FEATURES:
            assert node is not None
            message = f"LIKE has no feature {feature}"
            raise SqlValidationError(message, at=node.at, hint=nearest(feature, ("ALL", *_FEATURES)))
        elif strategy == "OVERWRITING" and feature not in _CAN_OVERWRITE:
            assert node is not None
            message = f"LIKE cannot overwrite {feature}"
            raise SqlValidationError(message, at=node.at, hint=f"write EXCLUDING {feature}")
    strategies.update({feature: strategy for strategy, feature in options if feature != "ALL"})
    return strategies


def add_column(columns: list[ColumnDefinition], column: ColumnDefinition, at: int, node: s.LikeClause | None) -> None:
    """Add a column of the statement.

    With OVERWRITING, a computed column can replace a computed column, and a metadata column a metadata column."""
    names = [existing.name for existing in columns]
    if column.name not in names:
        columns.append(column)
        return
    index = names.index(column.name)
    feature = "GENERATED" if column.expr is not None else "METADATA" if column.metadata_key is not None else ""
    other = columns[index]
    is_same_category = (other.expr is None, other.metadata_key is None) == (
        column.expr is None,
        column.metadata_key is None,
    )
    if feature and is_same_category and _read_strategies(node)[feature] == "OVERWRITING":
        columns[index] = column
        return
    message = f"column '{column.name}' is defined twice"
    hint = None
    if node is not None:
        hint = "the table in LIKE has this column" + (f"; write OVERWRITING {feature}" if feature else "")
    raise SqlValidationError(message, at=at, hint=hint)


def check_conflicts(node: s.CreateTable, base: TableDefinition) -> None:
    """Raise an error for a feature that both tables define, unless it is overwritten."""
    strategies = _read_strategies(node.like)
    in_both = {
        "WATERMARKS": node.watermark is not None and base.watermark is not None,
        "CONSTRAINTS": bool(node.primary_key and base.primary_key),
        "PARTITIONS": bool(node.partitions and base.partitions),
        "DISTRIBUTION": node.distribution is not None and base.distribution is not None,
        "OPTIONS": bool(dict(node.options).keys() & dict(base.options).keys()),
    }
    for feature, is_in_both in in_both.items():
        if is_in_both and strategies[feature] != "OVERWRITING":
            message = f"both tables define {feature}"
            words = " or ".join(["EXCLUDING", *(["OVERWRITING"] if feature in _CAN_OVERWRITE else [])])
            raise SqlValidationError(message, at=node.at, hint=f"write LIKE ... ({words} {feature})")
