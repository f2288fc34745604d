"""Limits of the number of tokens that a text has when it is sent to a model.

Promises: Flink's actions: a longer text loses its head or its tail, or its row is skipped; with `-log` it is logged.
Does not know: models, and how a text is divided into tokens."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.errors import UserError

_log = logging.getLogger(__name__)
ACTIONS = (
    "truncated-tail",
    "truncated-tail-log",
    "truncated-head",
    "truncated-head-log",
    "skipped",
    "skipped-log",
)


class Encoding(Protocol):
    """Divides texts into tokens, as `tiktoken.Encoding` does."""

    def encode_ordinary(self, text: str) -> list[int]:
        """Return the tokens of a text."""

    def decode(self, tokens: list[int]) -> str:
        """Return the text of tokens."""


class NoTokenizer(UserError):
    """The tokens of a text cannot be counted."""


@dataclass(frozen=True)
class ContextLimit:
    """The maximum number of tokens of a text, and the action for a longer text."""

    tokens: int
    action: str

    def apply(self, text: str, encoding: Encoding) -> str | None:
        """Return the text, shortened if it is too long; None if its row is skipped."""
        tokens = encoding.encode_ordinary(text)
        if len(tokens) <= self.tokens:
            return text
        if self.action.endswith("-log"):
            _log.info("context overflow: %d tokens, the limit is %d (%s)", len(tokens), self.tokens, self.action)
        match self.action.removesuffix("-log"):
            case "truncated-tail":
                return encoding.decode(tokens[: self.tokens])
            case "truncated-head":
                return encoding.decode(tokens[len(tokens) - self.tokens :])
        return None


def load_encoding(model: str) -> Any:
    """Return the encoding of a model; it needs the package `tiktoken`."""
    try:
        tiktoken = importlib.import_module("tiktoken")
    except ImportError:
        message = "the option 'max-context-size' needs the package tiktoken, which counts tokens"
        raise NoTokenizer(message, hint="pip install tiktoken") from None
    try:
        return tiktoken.encoding_for_model(model)
    except KeyError:
        message = f"there is no tokenizer for model '{model}', so 'max-context-size' cannot be set"
        raise NoTokenizer(message) from None
