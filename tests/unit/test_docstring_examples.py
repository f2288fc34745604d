"""The public API is documented: public classes, methods and functions have docstrings, and the examples in them run."""

import contextlib
import doctest
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import millstream
from millstream.datastream.connectors.missing import ConnectorMissing

PUBLIC = ("common", "connector", "datastream", "table", "cep", "state_processor", "testing")
# Packages whose classes users get from the public ones.
DEFINING = ("config", "event_time", "functions", "job", "state_descriptors", "types", "windows")
METHODS = (property, functools.cached_property, classmethod, staticmethod)
# A summary in the imperative starts with a verb, not with one of these words.
NOT_A_VERB = frozenset(
    {"A", "All", "An", "As", "How", "It", "Not", "One", "That", "The", "They", "This", "What", "Where", "Whether"}
)


def modules_of(package: str) -> Iterator[ModuleType]:
    top = importlib.import_module(f"{millstream.__name__}.{package}")
    yield top
    for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
        with contextlib.suppress(ConnectorMissing):  # its import only says what to use instead
            yield importlib.import_module(module.name)


def public_names(module: ModuleType) -> dict[str, Any]:
    """What users import from a module: `__all__`, or what the module defines itself."""
    if hasattr(module, "__all__"):
        return {name: getattr(module, name) for name in module.__all__}
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


def documented_objects(package: str) -> dict[str, Any]:
    """Every public class, method and function of a package that is defined in millstream, by its full name."""
    documented: dict[str, Any] = {}
    pending = [value for module in modules_of(package) for value in public_names(module).values()]
    while pending:
        value = pending.pop()
        if not isinstance(value, type) and not inspect.isfunction(value):
            continue
        name = f"{value.__module__}.{value.__qualname__}"
        if not name.startswith(f"{millstream.__name__}.") or name in documented or "<locals>" in name:
            continue
        documented[name] = value
        if isinstance(value, type):
            fields = getattr(value, "__dataclass_fields__", {})
            for attribute, member in vars(value).items():
                if attribute.startswith("_") or attribute in fields:
                    continue
                if isinstance(member, type):
                    pending.append(member)
                elif isinstance(member, METHODS) or (inspect.isfunction(member) and member.__name__ == attribute):
                    documented[f"{name}.{attribute}"] = member
    return documented


def is_method_or_function(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, classmethod | staticmethod)


@pytest.mark.parametrize("package", PUBLIC)
def test_every_public_class_and_method_has_a_docstring(package: str) -> None:
    documented = documented_objects(package)
    assert documented
    assert [name for name, value in sorted(documented.items()) if not (value.__doc__ or "").strip()] == []


@pytest.mark.parametrize("package", PUBLIC)
def test_docstrings_of_methods_are_in_the_imperative(package: str) -> None:
    summaries = {
        name: value.__doc__.split()[0]
        for name, value in documented_objects(package).items()
        if is_method_or_function(value) and value.__doc__
    }
    assert [f"{name}: {word}" for name, word in sorted(summaries.items()) if word in NOT_A_VERB] == []


def modules_with_examples() -> list[str]:
    names = []
    for package in (*PUBLIC, *DEFINING):
        top = importlib.import_module(f"{millstream.__name__}.{package}")
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            loader = module.module_finder.find_spec(module.name, None).loader  # type: ignore[union-attr, call-arg]
            if ">>>" in (loader.get_source(module.name) or ""):  # type: ignore[union-attr]
                names.append(module.name)
    return names


@pytest.mark.usefixtures("inline_engine")
@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted
    assert not results.failed
