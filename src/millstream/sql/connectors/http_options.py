"""Options that the HTTP connectors share: headers, timeouts, TLS.

Promises: the option keys of the connector `flink-http-connector` of GetInData.
Does not know: what is requested."""

from __future__ import annotations

import logging

from millstream.connector.http_client import StatusCodes, TlsOptions, encode_basic
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.connector.table_formats import call_for_table

PREFIX = "gid.connector.http."
_SECURITY = f"{PREFIX}security."
SECURITY_OPTIONS = (
    *(f"{_SECURITY}cert.server", f"{_SECURITY}cert.client", f"{_SECURITY}key.client"),
    f"{_SECURITY}cert.server.allowSelfSigned",
)

_log = logging.getLogger("millstream.http")


def read_headers(context: TableContext, prefix: str, *, raw: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the headers of requests. Unless `raw`, an Authorization of the form `user:password` is encoded."""
    headers: dict[str, str] = {"Content-Type": "application/json"}
    for key, value in context.options.items():
        if key.startswith(prefix):
            name = key.removeprefix(prefix)
            if name.lower() == "authorization" and not raw and ":" in value and " " not in value:
                value = encode_basic(*value.split(":", 1))
            headers = {other: text for other, text in headers.items() if other.lower() != name.lower()}
            headers[name] = value
    return tuple(headers.items())


def read_tls(context: TableContext) -> TlsOptions:
    """Return the options of TLS."""
    options = context.options
    servers = [path.strip() for path in options.get(f"{_SECURITY}cert.server", "").split(",")]
    return TlsOptions(
        tuple(path for path in servers if path),
        options.get(f"{_SECURITY}cert.client"),
        options.get(f"{_SECURITY}key.client"),
        context.flag(f"{_SECURITY}cert.server.allowSelfSigned"),
    )


def read_codes(context: TableContext, key: str, default: str) -> StatusCodes:
    """Return a set of status codes."""
    return call_for_table(context, lambda: StatusCodes.parse(context.options.get(key, default)))


def read_seconds(context: TableContext, key: str, default: int) -> float:
    """Return a number of seconds, which must be positive."""
    seconds = context.integer(key, default) or 0
    if seconds <= 0:
        message = f"option '{key}' must be a number of seconds above 0, not '{context.options[key]}'"
        raise context.fail(message)
    return float(seconds)


def warn_without_effect(context: TableContext, keys: tuple[str, ...], reason: str) -> None:
    """Log the options of a table that are accepted and have no effect."""
    for key in keys:
        if key in context.options:
            _log.warning("option '%s' has no effect: %s", key, reason)
