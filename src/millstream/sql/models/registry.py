"""The providers of models by name.

Promises: a provider of another package is found by the entry point group `millstream.model_providers`.
Does not know: models."""

from __future__ import annotations

from importlib.metadata import entry_points

from millstream.sql.errors import nearest
from millstream.sql.models import openai, python_objects
from millstream.sql.models.provider import ModelContext, ModelProvider

_GROUP = "millstream.model_providers"
_PROVIDERS = {provider.name: provider for provider in (openai.PROVIDER, python_objects.PROVIDER)}


def find_provider(context: ModelContext) -> ModelProvider:
    """Return the provider of a model; raise if its option `provider` is missing or names no provider."""
    name = context.required("provider").lower()
    if name in _PROVIDERS:
        return _PROVIDERS[name]
    installed = {entry.name: entry for entry in entry_points(group=_GROUP)}
    if name not in installed:
        message = f"there is no provider '{name}'"
        raise context.fail(message, nearest(name, sorted({*_PROVIDERS, *installed})))
    provider: ModelProvider = installed[name].load()
    return provider
