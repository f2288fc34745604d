"""The provider `openai`: chat completions and embeddings of any server that has OpenAI's HTTP interface.

Promises: Flink's options and their defaults. A row whose text is NULL has no prediction. After the last retry a failed
request fails the job, or the row is dropped or gets the error in metadata columns, depending on the options.
Does not know: queries, and how many calls are in flight."""

from __future__ import annotations

import logging
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from millstream.sql.catalog.catalog import ColumnDefinition
from millstream.sql.models.context_limits import ACTIONS, ContextLimit, load_encoding
from millstream.sql.models.http_requests import ModelRequestFailed, ModelServer
from millstream.sql.models.provider import ModelContext, ModelProvider, PredictFunction
from millstream.sql.types import data_types as t

_log = logging.getLogger(__name__)
_CHAT, _EMBEDDINGS = "chat/completions", "embeddings"
_STRATEGIES, _FALLBACKS = ("retry", "failover", "ignore"), ("failover", "ignore")
_FLOATS = t.ArrayType(t.FloatType())
_ERROR_TYPES: dict[str, t.DataType] = {
    "error-string": t.STRING,
    "http-status-code": t.INT,
    "http-headers-map": t.MapType(t.STRING, t.ArrayType(t.STRING)),
}
# The options of chat completions: the key and its deprecated form, the field of the request, the type.
_CHAT_FIELDS: tuple[tuple[tuple[str, ...], str, type[int] | type[float]], ...] = (
    (("temperature",), "temperature", float),
    (("top-p", "topP"), "top_p", float),
    (("max-tokens", "maxTokens"), "max_tokens", int),
    (("presence-penalty",), "presence_penalty", float),
    (("n",), "n", int),
    (("seed",), "seed", int),
)
_OPTIONS = (
    *("endpoint", "api-key", "model", "max-context-size", "context-overflow-action", "error-handling-strategy"),
    *("retry-num", "retry-fallback-strategy", "system-prompt", "systemPrompt", "stop", "response-format", "dimension"),
    *(key for keys, _, _ in _CHAT_FIELDS for key in keys),
)


@dataclass
class OpenAiFunction:
    """Requests the completions or the embedding of a text from the server.

    `template` is the request without the text, `columns` are the metadata keys of the output columns, None for the
    prediction."""

    server: ModelServer
    template: dict[str, Any]
    is_chat: bool
    columns: tuple[str | None, ...]
    ignores_errors: bool
    limit: ContextLimit | None
    capacity: int

    def open(self, function_context: Any) -> None:
        """Start the threads that send requests."""
        self._executor = ThreadPoolExecutor(self.capacity, thread_name_prefix="model-request")
        self._encoding: Any = None if self.limit is None else load_encoding(self.template["model"])

    def close(self) -> None:
        """Stop the threads that send requests; abandoned requests end by themselves."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def eval(self, text: str | None) -> list[tuple[Any, ...]]:
        """Return the predictions for a text."""
        if text is not None and self.limit is not None:
            text = self.limit.apply(text, self._encoding)
        if text is None:
            return []
        try:
            answer = await self.server.request(self._body(text), self._executor)
            return [self._row(value) for value in self._values(answer)]
        except ModelRequestFailed as problem:
            if not self.ignores_errors:
                raise
            _log.warning("a row has no prediction: %s", problem)
            has_metadata = any(column is not None for column in self.columns)
            return [tuple(_find_error_value(column, problem) for column in self.columns)] if has_metadata else []

    def _body(self, text: str) -> dict[str, Any]:
        if not self.is_chat:
            return {**self.template, "input": text}
        return {**self.template, "messages": [*self.template["messages"], {"role": "user", "content": text}]}

    def _values(self, answer: dict[str, Any]) -> list[Any]:
        try:
            if self.is_chat:
                return [choice["message"].get("content") or "" for choice in answer["choices"]]
            return [[float(number) for number in item["embedding"]] for item in answer["data"]]
        except (KeyError, TypeError, ValueError, AttributeError):
            expected = "choices with messages" if self.is_chat else "data with embeddings"
            raise ModelRequestFailed(
                self.server.url, f"the answer has no {expected}: {str(answer)[:200]}", 200
            ) from None

    def _row(self, value: Any) -> tuple[Any, ...]:
        return tuple(value if column is None else None for column in self.columns)


def _find_error_value(column: str | None, problem: ModelRequestFailed) -> Any:
    match column:
        case "error-string":
            return problem.message
        case "http-status-code":
            return problem.status
        case "http-headers-map":
            return problem.headers
    return None


def _create(context: ModelContext) -> PredictFunction:
    context.check(_OPTIONS)
    endpoint = re.sub("/*$", "", context.required("endpoint"))
    is_chat = endpoint.lower().endswith(_CHAT)
    if not is_chat and not endpoint.lower().endswith(_EMBEDDINGS):
        message = f"the endpoint '{endpoint}' ends neither with {_CHAT} nor with {_EMBEDDINGS}"
        raise context.fail(message)
    if not endpoint.lower().startswith(("http://", "https://")):
        message = f"the endpoint '{endpoint}' must start with http:// or https://"
        raise context.fail(message)
    context.single_column(context.model.input, t.STRING, "input")
    context.single_column(context.model.output, t.STRING if is_chat else _FLOATS, "output")
    strategy = context.word("error-handling-strategy", _STRATEGIES, "retry")
    fallback = context.word("retry-fallback-strategy", _FALLBACKS, "failover")
    retries = context.number(int, "retry-num")
    server = ModelServer(
        endpoint,
        context.required("api-key"),
        int(100 if retries is None else retries) if strategy == "retry" else 0,
        context.timeout,
    )
    size = context.number(int, "max-context-size")
    action = context.word("context-overflow-action", ACTIONS, "truncated-tail")
    function = OpenAiFunction(
        server,
        _create_chat_template(context) if is_chat else _create_embedding_template(context),
        is_chat,
        tuple(_read_metadata_key(context, column) for column in context.model.output),
        (fallback if strategy == "retry" else strategy) == "ignore",
        None if size is None else ContextLimit(int(size), str(action)),
        context.capacity,
    )
    return PredictFunction(function, asynchronous=True)


def _create_chat_template(context: ModelContext) -> dict[str, Any]:
    prompt = context.text("system-prompt", "systemPrompt") or "You are a helpful assistant."
    template: dict[str, Any] = {
        "model": context.required("model"), "messages": [{"role": "system", "content": prompt}],
    }  # fmt: skip
    for keys, field, parse in _CHAT_FIELDS:
        value = context.number(parse, *keys)
        if value is not None:
            template[field] = value
    if stop := context.text("stop"):
        template["stop"] = stop.split(",")
    if response_format := context.word("response-format", ("text", "json_object"), None):
        template["response_format"] = {"type": response_format}
    return template


def _create_embedding_template(context: ModelContext) -> dict[str, Any]:
    template: dict[str, Any] = {"model": context.required("model"), "encoding_format": "float"}
    dimension = context.number(int, "dimension")
    return template if dimension is None else {**template, "dimensions": dimension}


def _read_metadata_key(context: ModelContext, column: ColumnDefinition) -> str | None:
    key = column.metadata_key
    if key is None:
        return None
    if key not in _ERROR_TYPES:
        message = f"there is no metadata '{key}'"
        raise context.fail(message, f"there are: {', '.join(_ERROR_TYPES)}")
    if not column.type.nullable().same(_ERROR_TYPES[key]):
        message = f"metadata column '{column.name}' must be {_ERROR_TYPES[key]}, not {column.type}"
        raise context.fail(message)
    return key


PROVIDER = ModelProvider("openai", _create)
