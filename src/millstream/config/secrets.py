"""Masks secrets: passwords, tokens and access keys in options, URLs and statements.

Promises: an option is secret if Flink treats it as sensitive, or if its key names an access key; `mask_secret` and
`mask_statement` change nothing else.
Does not know: where the results are displayed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

HIDDEN = "******"
_NAMES = (
    *("password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token"),
    *("basic-auth", "jaas.config", "http-headers", "authorization"),
    *("access-key", "access.key", "accesskey", "private-key", "private.key", "passphrase", "credential"),
    *("ssl.key.pem", "keystore.key"),
)
_USER_INFO = re.compile(r"(?<=://)[^/?#@:\s']*:(?P<value>[^/?#@\s']+)(?=@)")
_PARAMETER = re.compile(r"[?&;](?P<key>[^=&;?\s']+)=(?P<value>[^&;\s']+)")
_WORDS = re.compile(r"--[^\n]*|/\*(?!\+).*?(?:\*/|\Z)|`(?:[^`]|``)*(?:`|\Z)|'(?P<text>(?:[^']|'')*)(?:'|\Z)", re.DOTALL)
_BETWEEN = re.compile(r"\s*=?\s*")  # a secret is masked even if the equals sign is missing
_SET = re.compile(r"\bSET\s+(?P<key>[^'\s=;]+)\s*=\s*(?P<value>[^'\s;][^;]*)", re.IGNORECASE)


def is_secret(key: str) -> bool:
    """Return whether the value of an option is a secret."""
    lower = key.lower()
    return any(name in lower for name in _NAMES)


def mask_secret(key: str, value: Any) -> Any:
    """Return the value of an option for display: masked if it is a secret, and without passwords of URLs."""
    if is_secret(key):
        return HIDDEN
    return _mask(value, _in_urls(value)) if isinstance(value, str) else value


def mask_secrets(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for display, with masked secrets."""
    return {key: mask_secret(key, value) for key, value in options.items()}


def mask_statement(statement: str, offset: int = 0) -> tuple[str, int, list[str]]:
    """Return a statement with masked secrets, the new offset of the character at `offset`, and the secrets."""
    spans = sorted(set(chain(_in_options(statement), _in_urls(statement))))
    masked_offset = offset
    for start, stop in spans:
        if offset >= stop:
            masked_offset += len(HIDDEN) - (stop - start)
        elif offset > start:
            masked_offset -= offset - start
    return _mask(statement, spans), masked_offset, [statement[start:stop] for start, stop in spans]


def _in_options(text: str) -> Iterator[tuple[int, int]]:
    literals = [match for match in _WORDS.finditer(text) if match["text"] is not None]
    for key, value in pairwise(literals):
        if value["text"] and is_secret(key["text"]) and _BETWEEN.fullmatch(text, key.end(), value.start()):
            yield value.span("text")
    yield from (match.span("value") for match in _SET.finditer(text) if is_secret(match["key"]))


def _in_urls(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span("value") for match in _USER_INFO.finditer(text))
    yield from (match.span("value") for match in _PARAMETER.finditer(text) if is_secret(match["key"]))


def _mask(text: str, spans: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> str:
    parts, end = [], 0
    for start, stop in sorted(spans):
        if start >= end:
            parts += [text[end:start], HIDDEN]
            end = stop
    return "".join([*parts, text[end:]])
