"""Lookups over HTTP: 'connector' = 'rest-lookup'.

Promises: the option keys and metadata columns of the connector `flink-http-connector` of GetInData. A request has the
key of one row. Errors fail the job, or are returned in metadata columns if 'continue-on-error' is set.
Does not know: joins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_plus

from millstream.connector.http_client import (
    Backoff,
    HttpClient,
    HttpOptions,
    HttpRequestFailed,
    HttpResponse,
    StatusCodes,
    check_url,
)
from millstream.connector.lookup_cache import Key
from millstream.errors import ExternalError
from millstream.formats import Format, OnError
from millstream.sql.columns import create_external_converter
from millstream.sql.connector.lookup import CACHE_OPTIONS, Lookup, LookupRows, TableLookup, read_cache_policy
from millstream.sql.connector.table_connector import TableConnector, TableContext
from millstream.sql.connector.table_formats import Columns, TableFormat, call_for_table, create_format, read_format
from millstream.sql.connectors.http_options import (
    PREFIX,
    SECURITY_OPTIONS,
    read_codes,
    read_headers,
    read_seconds,
    read_tls,
    warn_without_effect,
)
from millstream.sql.errors import nearest
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis
from millstream.types.row import Row

_LOOKUP = f"{PREFIX}source.lookup."
_REQUEST = f"{PREFIX}request."
_RETRY = f"{_LOOKUP}retry-strategy."
_FIELDS, _BODY, _URL_MAP = f"{_REQUEST}query-param-fields", f"{_REQUEST}body-fields", f"{_REQUEST}url-map"
_CREATORS = ("generic-get-query", "generic-json-query", "generic-json-url", "elasticsearch-lite")
_WITHOUT_EFFECT = (
    f"{PREFIX}logging.level", f"{_LOOKUP}http-version", f"{_LOOKUP}request.thread-pool.size",
    f"{_LOOKUP}response.thread-pool.size", f"{_LOOKUP}request-callback", f"{_LOOKUP}connection.timeout",
)  # fmt: skip
_METADATA: dict[str, t.DataType] = {
    "error-string": t.STRING,
    "http-status-code": t.INT,
    "http-headers-map": t.MapType(t.STRING, t.ArrayType(t.STRING)),
    "http-completion-state": t.STRING,
}


class UnreadableAnswer(ExternalError):
    """The answer of a server cannot be decoded."""

    def __init__(self, url: str, reason: str, body: bytes) -> None:
        self.body = body
        super().__init__(
            f"the answer of {url.partition('?')[0]} cannot be decoded: {reason}: {body[:200]!r}",
            hint="check 'format' and the columns of the table, or set the option that ignores parse errors",
        )


@dataclass(frozen=True)
class Query:
    """How a request is created from the values of a key, which are JSON values by column name."""

    url: str
    method: str
    parameters: tuple[str, ...]  # columns that are parameters of the URL
    body: tuple[str, ...]  # columns that are fields of the body
    placeholders: tuple[tuple[str, str], ...] = ()  # columns whose values replace these placeholders of the URL
    lucene: bool = False  # one parameter `q` with all columns, for Elasticsearch

    def build(self, values: Mapping[str, Any]) -> tuple[str, bytes | None]:
        """Return the URL and the body of a request."""
        url = self.url
        for column, placeholder in self.placeholders:
            url = url.replace(f"{{{placeholder}}}", quote(_to_text(values.get(column)), safe=""))
        pairs = [f"{quote_plus(name)}={quote_plus(_to_text(values.get(name)))}" for name in self.parameters]
        if self.lucene:
            terms = " AND ".join(f'{name}:"{_to_text(values.get(name))}"' for name in self.parameters)
            pairs = [f"q={quote_plus(terms)}"]
        if pairs:
            url += ("&" if "?" in url else "?") + "&".join(pairs)
        if self.method == "GET":
            return url, None
        return url, json.dumps({name: values.get(name) for name in self.body}).encode()


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class Answers:
    """How the status codes and bodies of answers are interpreted."""

    success: StatusCodes
    ignored: StatusCodes
    is_array: bool
    continue_on_error: bool
    metadata: tuple[str, ...]  # the keys of metadata columns, in order


class HttpLookup(Lookup):
    """Finds the rows of keys with one request for each."""

    def __init__(
        self,
        query: Query,
        options: HttpOptions,
        answers: Answers,
        schema: t.RowType,
        keys: t.RowType,
        formats: tuple[Format, Format],
    ) -> None:
        self._arguments = (query, options, answers, schema, keys, formats)
        self._query, self._answers, self._schema, self._keys = query, answers, schema, keys
        self._request_format, self._format = formats
        self._client = HttpClient(options)
        self._key_columns = Columns(keys, keys.names)
        self._external = [create_external_converter(data_type) for data_type in keys.types]

    def __reduce__(self) -> tuple[Any, ...]:
        return HttpLookup, self._arguments

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        """Return the rows of each key."""
        return {key: self._find(key) for key in keys}

    def _find(self, key: Key) -> LookupRows:
        url, body = self._query.build(self._to_json(key))
        answers = self._answers
        try:
            response = self._client.request(self._query.method, url, body)
            if response.status in answers.ignored:
                return self._without_content(response, "IGNORE_STATUS_CODE", None)
            if response.status not in answers.success:
                text = response.body[:300].decode(errors="replace")
                raise HttpRequestFailed(
                    self._query.method, url, f"HTTP status {response.status}: {text}", response.status
                )
            rows = self._decode(url, response.body)
        except HttpRequestFailed as problem:
            if not answers.continue_on_error:
                raise
            if problem.status is None:
                return self._without_content(None, "EXCEPTION", problem.message)
            return self._without_content(response, "HTTP_ERROR_STATUS", problem.message)
        except UnreadableAnswer as problem:
            if not answers.continue_on_error:
                raise
            text = problem.body.decode(errors="replace")
            return self._without_content(response, "UNABLE_TO_DESERIALIZE_RESPONSE", text)
        metadata = self._metadata(response, "SUCCESS", None)
        return [(*row, *metadata) for row in rows]

    def _to_json(self, key: Key) -> dict[str, Any]:
        """Return the values of a key as the request format writes them."""
        values = [
            value if convert is None or value is None else convert(value)
            for value, convert in zip(key, self._external, strict=True)
        ]
        row = Row._from(list(self._keys.names), values)
        document: dict[str, Any] = json.loads(self._request_format.encode(self._key_columns.project([row]))[0])
        return document

    def _decode(self, url: str, body: bytes) -> list[Sequence[Any]]:
        if not body.strip():
            return []
        records = [body]
        if self._answers.is_array:
            try:
                elements = json.loads(body)
            except ValueError as problem:
                raise UnreadableAnswer(url, str(problem), body) from None
            if not isinstance(elements, list):
                raise UnreadableAnswer(url, "it is not an array", body)
            records = [json.dumps(element).encode() for element in elements if element is not None]
        decoded = self._format.decode(records)
        if decoded.errors and self._format.on_error is OnError.FAIL:
            raise UnreadableAnswer(url, decoded.errors[0].reason, body)
        return [row._values for row in decoded.rows(self._format.type_info)]

    def _without_content(self, response: HttpResponse | None, state: str, error: str | None) -> LookupRows:
        """Return one row with metadata only; none if the table has no metadata columns."""
        if not self._answers.metadata:
            return []
        return [(*(None,) * len(self._schema), *self._metadata(response, state, error))]

    def _metadata(self, response: HttpResponse | None, state: str, error: str | None) -> tuple[Any, ...]:
        values = {
            "error-string": error,
            "http-status-code": None if response is None else response.status,
            "http-headers-map": None if response is None else response.headers,
            "http-completion-state": state,
        }
        return tuple(values[key] for key in self._answers.metadata)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _create_lookup(context: TableContext, keys: tuple[str, ...]) -> TableLookup:
    table_format = _check(context)
    if context.options.get("lookup.cache", "").upper() == "FULL":
        message = "'lookup.cache' = 'FULL' needs a table that can be read as a whole"
        raise context.fail(message, "use PARTIAL or NONE")
    policy = read_cache_policy(context)
    metadata = [(column.name, str(column.metadata_key)) for column in context.metadata]
    for column, key in metadata:
        if key not in _METADATA:
            message = f"an HTTP answer has no metadata '{key}' (column '{column}')"
            raise context.fail(message, nearest(key, _METADATA))
    schema = context.schema
    key_row = t.row_of(list(keys), [schema.types[schema.names.index(name)] for name in keys], null=False)
    prefix = "lookup-request.format.json."
    options = {k.removeprefix(prefix): v for k, v in context.options.items() if k.startswith(prefix)}
    request_format = TableFormat("json", prefix, tuple(sorted(options.items())))
    formats = create_format(context, request_format, key_row), create_format(context, table_format, schema)
    result_type = context.word(f"{_LOOKUP}result-type", ("single-value", "array"), "single-value")
    answers = Answers(
        read_codes(context, f"{_LOOKUP}success-codes", "2XX"),
        read_codes(context, f"{_LOOKUP}ignored-response-codes", ""),
        result_type == "array",
        context.flag(f"{_LOOKUP}continue-on-error"),
        tuple(key for _, key in metadata),
    )
    lookup = HttpLookup(_read_query(context, keys), _read_request_options(context), answers, schema, key_row, formats)
    names, types = (
        [*schema.names, *(name for name, _ in metadata)],
        [*schema.types, *(_METADATA[k] for _, k in metadata)],
    )
    asynchronous = context.flag("asyncPolling")
    return TableLookup(lookup, t.row_of(names, types, null=False), policy, asynchronous, 1 if asynchronous else 1000)


def _check(context: TableContext) -> TableFormat:
    url = context.required("url")
    context.required("format")
    table_format = read_format(context, "format")
    assert table_format is not None
    option_keys = [
        "success-codes", "retry-codes", "ignored-response-codes", "continue-on-error", "request.timeout",
        "query-creator", "result-type", "use-raw-authorization-header", "retry-strategy.type",
        "retry-strategy.fixed-delay.delay", "retry-strategy.exponential-delay.initial-backoff",
        "retry-strategy.exponential-delay.max-backoff", "retry-strategy.exponential-delay.backoff-multiplier",
    ]  # fmt: skip
    known = ["url", "format", "asyncPolling", "lookup-method", "lookup-request.format", *CACHE_OPTIONS]
    known += [
        *(f"{_LOOKUP}{key}" for key in option_keys),
        _FIELDS,
        _BODY,
        _URL_MAP,
        *_WITHOUT_EFFECT,
        *SECURITY_OPTIONS,
    ]
    context.check(known, [table_format.prefix, "lookup-request.format.json.", f"{_LOOKUP}header."])
    call_for_table(context, lambda: check_url(url))
    if context.options.get("lookup-request.format", "json") != "json":
        message = "requests are written as JSON: 'lookup-request.format' must be json"
        raise context.fail(message)
    warn_without_effect(
        context, _WITHOUT_EFFECT, "asynchronous lookups send up to 8 requests in parallel, with HTTP 1.1"
    )
    return table_format


def _read_query(context: TableContext, keys: tuple[str, ...]) -> Query:
    url, method = context.required("url"), context.options.get("lookup-method", "GET").upper()
    is_get = method == "GET"
    creator = context.word(f"{_LOOKUP}query-creator", _CREATORS, _CREATORS[0] if is_get else _CREATORS[1])
    if creator != "generic-json-url":
        return Query(url, method, keys if is_get else (), keys, lucene=creator == "elasticsearch-lite")
    parameters, body = (
        tuple(filter(None, (name.strip() for name in context.options.get(key, "").split(";"))))
        for key in (_FIELDS, _BODY)
    )
    placeholders: list[tuple[str, str]] = []
    for pair in filter(None, (pair.strip() for pair in context.options.get(_URL_MAP, "").split(","))):
        column, colon, placeholder = pair.partition(":")
        if not colon:
            message = f"option '{_URL_MAP}' must be pairs such as customerId:cid, not '{pair}'"
            raise context.fail(message)
        placeholders.append((column.strip(), placeholder.strip()))
    for name in (*parameters, *body, *(column for column, _ in placeholders)):
        if name not in keys:
            message = f"the request needs column '{name}', which the join does not compare"
            raise context.fail(message, f"the join compares {', '.join(keys)}")
    return Query(url, method, parameters, body, tuple(placeholders))


def _read_request_options(context: TableContext) -> HttpOptions:
    retries = context.integer("lookup.max-retries", 3) or 0
    if context.word(f"{_RETRY}type", ("fixed-delay", "exponential-delay"), "fixed-delay") == "fixed-delay":
        backoff = Backoff(retries, _read_duration(context, f"{_RETRY}fixed-delay.delay", "1 s"))
    else:
        text = context.options.get(f"{_RETRY}exponential-delay.backoff-multiplier", "1.5")
        try:
            factor = float(text)
        except ValueError:
            message = f"option '{_RETRY}exponential-delay.backoff-multiplier' must be a number, not '{text}'"
            raise context.fail(message) from None
        first = _read_duration(context, f"{_RETRY}exponential-delay.initial-backoff", "1 s")
        backoff = Backoff(
            retries, first, factor, _read_duration(context, f"{_RETRY}exponential-delay.max-backoff", "1 min")
        )
    raw = context.flag(f"{_LOOKUP}use-raw-authorization-header")
    return HttpOptions(
        read_headers(context, f"{_LOOKUP}header.", raw=raw),
        read_seconds(context, f"{_LOOKUP}request.timeout", 30),
        backoff,
        read_codes(context, f"{_LOOKUP}retry-codes", "500,503,504"),
        read_tls(context),
    )


def _read_duration(context: TableContext, key: str, default: str) -> float:
    return parse_duration_millis(context.options.get(key, default)) / 1000


CONNECTORS = (TableConnector("rest-lookup", lookup=_create_lookup, metadata=_METADATA),)
