"""Nexmark's tables and queries in any engine that speaks Flink SQL.

Promises: the same statements for millstream and for Flink; imports neither. A query is the statements of its file, of
which the last one inserts.
Does not know: how queries are timed or compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any

QUERIES = tuple(f"q{number}" for number in range(24))
PATTERNS = tuple(f"p{number}" for number in range(4))
HERE = Path(__file__).resolve().parent

EVENTS = """
CREATE TEMPORARY TABLE events (
  event_type INT,
  person ROW<
    id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR,
    `dateTime` TIMESTAMP(3), extra VARCHAR>,
  auction ROW<
    id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3),
    expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR>,
  bid ROW<
    auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
  `dateTime` AS CASE
    WHEN event_type = 0 THEN person.`dateTime` WHEN event_type = 1 THEN auction.`dateTime` ELSE bid.`dateTime` END,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ({options})
"""
VIEWS = (
    "CREATE TEMPORARY VIEW person AS SELECT person.id, person.name, person.emailAddress, person.creditCard, "
    "person.city, person.state, `dateTime`, person.extra FROM events WHERE event_type = 0",
    "CREATE TEMPORARY VIEW auction AS SELECT auction.id, auction.itemName, auction.description, auction.initialBid, "
    "auction.reserve, `dateTime`, auction.expires, auction.seller, auction.category, auction.extra FROM events "
    "WHERE event_type = 1",
    "CREATE TEMPORARY VIEW bid AS SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, "
    "bid.extra FROM events WHERE event_type = 2",
)


def create_tables(env: Any, options: Mapping[str, str]) -> None:
    """Make the table of events and its three views in a TableEnvironment."""
    shown = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    env.execute_sql(EVENTS.format(options=shown))
    for view in VIEWS:
        env.execute_sql(view)


def json_files(folder: Path) -> dict[str, str]:
    """The options of a table of events in files."""
    return {"connector": "filesystem", "path": str(folder), "format": "json"}


def statements(query: str, places: Mapping[str, str]) -> list[str]:
    """The statements of a query; `OUTPUT` is where q10 writes, `SIDE_INPUT` the options of q13's table."""
    text = Template((HERE / "queries" / f"{query}.sql").read_text()).substitute(places)
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";") if each.strip()]


def csv_file(path: Path) -> str:
    """The options of a table in a file."""
    return f"'connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv'"


SIDE_ROWS = [(number, str(number)) for number in range(10_000)]
OFFERED = "'connector' = 'values', 'data-id' = 'nexmark_side_input'"


def selected(insert: str) -> str:
    """The query of an INSERT."""
    return insert.partition("\n")[2]


def count_char(text: str, sign: str) -> int:
    """q14's function: how often a sign is in a text."""
    return text.count(sign)
