"""CREATE TABLE ... LIKE: what is taken over from another table.

Promises: Flink's defaults; what both tables say is refused, unless the statement says which of them holds.
Does not know: how tables are described otherwise."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.catalog.catalog import Catalogs, ColumnDefinition, TableDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.syntax import tree as s

_FEATURES = ("CONSTRAINTS", "DISTRIBUTION", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")
_CAN_OVERWRITE = ("GENERATED", "METADATA", "OPTIONS", "WATERMARKS")


def followed(catalogs: Catalogs, node: s.LikeClause) -> TableDefinition:
    """What is taken over of the table that a statement follows."""
    _, found = catalogs.table(node.table, node.at)
    if not isinstance(found, TableDefinition):
        message = f"'{'.'.join(node.table)}' is not a table that LIKE can follow"
        raise SqlValidationError(message, at=node.at, hint="a view can be copied by CREATE TABLE ... AS SELECT")
    how = _chosen(node)
    columns = tuple(
        each
        for each in found.columns
        if not (how["GENERATED"] == "EXCLUDING" and each.expr is not None)
        and not (how["METADATA"] == "EXCLUDING" and each.metadata_key is not None)
    )
    keyed = how["CONSTRAINTS"] != "EXCLUDING"
    return replace(
        found,
        columns=columns,
        options={} if how["OPTIONS"] == "EXCLUDING" else found.options,
        primary_key=found.primary_key if keyed else (),
        constraint=found.constraint if keyed else None,
        partitions=() if how["PARTITIONS"] == "EXCLUDING" else found.partitions,
        distribution=None if how["DISTRIBUTION"] == "EXCLUDING" else found.distribution,
        watermark=None if how["WATERMARKS"] == "EXCLUDING" else found.watermark,
    )


def _chosen(node: s.LikeClause | None) -> dict[str, str]:
    """INCLUDING, EXCLUDING or OVERWRITING for each feature of a table."""
    how = dict.fromkeys(_FEATURES, "INCLUDING") | {"OPTIONS": "OVERWRITING"}
    given = () if node is None else node.options
    for word, feature in given:
        if feature == "ALL":
            how.update(dict.fromkeys(_FEATURES, word))
        elif feature not in _FEATURES:
            assert node is not None
            message = f"LIKE knows no {feature}"
            raise SqlValidationError(message, at=node.at, hint=nearest(feature, ("ALL", *_FEATURES)))
        elif word == "OVERWRITING" and feature not in _CAN_OVERWRITE:
            assert node is not None
            message = f"LIKE cannot overwrite {feature}"
            raise SqlValidationError(message, at=node.at, hint=f"write EXCLUDING {feature}")
    how.update({feature: word for word, feature in given if feature != "ALL"})
    return how


def add_column(columns: list[ColumnDefinition], made: ColumnDefinition, at: int, node: s.LikeClause | None) -> None:
    """Add a column of the statement; one that is computed, or metadata, may take the place of another of its kind."""
    names = [each.name for each in columns]
    if made.name not in names:
        columns.append(made)
        return
    place = names.index(made.name)
    kind = "GENERATED" if made.expr is not None else "METADATA" if made.metadata_key is not None else ""
    other = columns[place]
    same = (other.expr is None) == (made.expr is None) and (other.metadata_key is None) == (made.metadata_key is None)
    if kind and same and _chosen(node)[kind] == "OVERWRITING":
        columns[place] = made
        return
    message = f"column '{made.name}' is there twice"
    hint = None if node is None else f"the table of LIKE has it{f'; write OVERWRITING {kind}' if kind else ''}"
    raise SqlValidationError(message, at=at, hint=hint)


def check(node: s.CreateTable, base: TableDefinition) -> None:
    """Refuse what both tables say."""
    how = _chosen(node.like)
    both = {
        "WATERMARKS": node.watermark is not None and base.watermark is not None,
        "CONSTRAINTS": bool(node.primary_key and base.primary_key),
        "PARTITIONS": bool(node.partitions and base.partitions),
        "DISTRIBUTION": node.distribution is not None and base.distribution is not None,
        "OPTIONS": bool(dict(node.options).keys() & dict(base.options).keys()),
    }
    for feature, twice in both.items():
        if twice and how[feature] != "OVERWRITING":
            message = f"the table of LIKE has {feature} too"
            words = " or ".join(["EXCLUDING", *(["OVERWRITING"] if feature in _CAN_OVERWRITE else [])])
            raise SqlValidationError(message, at=node.at, hint=f"write LIKE ... ({words} {feature})")
