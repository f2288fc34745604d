"""What nobody may read: passwords, tokens and keys among options, in URLs and in statements.

Promises: an option is a secret where Flink's configuration says so, and where its name speaks of a key of access;
`shown` and `hidden_in` leave everything else as it is.
Does not know: who shows what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Any

HIDDEN = "******"
_NAMES = (
    *("password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token"),
    *("basic-auth", "jaas.config", "http-headers"),
    *("access-key", "access.key", "accesskey", "private-key", "private.key", "passphrase", "credential"),
    *("ssl.key.pem", "keystore.key"),
)
_USER_INFO = re.compile(r"(?<=://)[^/?#@:\s']*:(?P<value>[^/?#@\s']+)(?=@)")
_PARAMETER = re.compile(r"[?&;](?P<key>[^=&;?\s']+)=(?P<value>[^&;\s']+)")
_WORDS = re.compile(r"--[^\n]*|/\*(?!\+).*?(?:\*/|\Z)|`(?:[^`]|``)*(?:`|\Z)|'(?P<text>(?:[^']|'')*)(?:'|\Z)", re.DOTALL)
_BETWEEN = re.compile(r"\s*=?\s*")  # a sign that was left out does not make a secret less of one
_SET = re.compile(r"\bSET\s+(?P<key>[^'\s=;]+)\s*=\s*(?P<value>[^'\s;][^;]*)", re.IGNORECASE)


def is_secret(key: str) -> bool:
    """Whether the value of an option is for nobody's eyes."""
    lower = key.lower()
    return any(name in lower for name in _NAMES)


def shown(key: str, value: Any) -> Any:
    """The value of an option for people: hidden where it is a secret, and without the secrets of a URL."""
    if is_secret(key):
        return HIDDEN
    return _without(value, _in_urls(value)) if isinstance(value, str) else value


def shown_all(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options for people."""
    return {key: shown(key, value) for key, value in options.items()}


def hidden_in(statement: str, at: int = 0) -> tuple[str, int, list[str]]:
    """A statement without the secrets that it gives to options, the place in it that was `at`, and those secrets."""
    spans = sorted(set(chain(_in_options(statement), _in_urls(statement))))
    place = at
    for start, stop in spans:
        if at >= stop:
            place += len(HIDDEN) - (stop - start)
        elif at > start:
            place -= at - start
    return _without(statement, spans), place, [statement[start:stop] for start, stop in spans]


def _in_options(text: str) -> Iterator[tuple[int, int]]:
    literals = [found for found in _WORDS.finditer(text) if found["text"] is not None]
    for key, value in pairwise(literals):
        if value["text"] and is_secret(key["text"]) and _BETWEEN.fullmatch(text, key.end(), value.start()):
            yield value.span("text")
    yield from (found.span("value") for found in _SET.finditer(text) if is_secret(found["key"]))


def _in_urls(text: str) -> Iterator[tuple[int, int]]:
    yield from (found.span("value") for found in _USER_INFO.finditer(text))
    yield from (found.span("value") for found in _PARAMETER.finditer(text) if is_secret(found["key"]))


def _without(text: str, spans: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> str:
    parts, end = [], 0
    for start, stop in sorted(spans):
        if start >= end:
            parts += [text[end:start], HIDDEN]
            end = stop
    return "".join([*parts, text[end:]])
