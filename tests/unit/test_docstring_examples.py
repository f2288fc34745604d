"""The public API is documented in Google's style: every class and method has a docstring that describes all parameters,
every class has an example, and the examples run."""

import contextlib
import doctest
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import millstream
from millstream.datastream.connectors.missing import ConnectorMissing

PUBLIC = (
    "cep",
    "common",
    "connector",
    "datastream",
    "gelly",
    "iteration",
    "metrics",
    "ml",
    "state_processor",
    "statefun",
    "table",
    "testing",
)
# Modules without `__all__` whose names are public, too: a page of the reference has all of them.
CONTRACTS = ("millstream.connector.sink", "millstream.connector.source")
METHODS = (property, functools.cached_property, classmethod, staticmethod)
# A summary in the imperative starts with a verb, not with one of these words.
NOT_A_VERB = frozenset(
    {
        "A",
        "Accepted",
        "All",
        "An",
        "As",
        "Called",
        "Each",
        "How",
        "It",
        "Not",
        "One",
        "That",
        "The",
        "They",
        "This",
        "What",
        "Where",
        "Whether",
    }
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


@functools.cache
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


@functools.cache
def api_names(package: str) -> set[str]:
    """The names that users import from the modules of a package, or of a package whose names they re-export."""
    return {
        f"{value.__module__}.{value.__qualname__}"
        for module in modules_of(package)
        if hasattr(module, "__all__") or module.__name__ in CONTRACTS
        for value in public_names(module).values()
        if isinstance(value, type) or inspect.isfunction(value)
    }


@functools.cache
def api_objects(package: str) -> dict[str, Any]:
    """The documented objects that belong to the API: its classes and functions, and what is defined inside them."""
    names = api_names(package)
    return {
        name: value
        for name, value in documented_objects(package).items()
        if any(name == api_name or name.startswith(f"{api_name}.") for api_name in names)
    }


def parameters_of(method: Any) -> list[str]:
    names = list(inspect.signature(getattr(method, "__func__", method)).parameters)
    return names[1:] if names[:1] in (["self"], ["cls"]) and not isinstance(method, staticmethod) else names


def overrides_documented_method(name: str, objects: dict[str, Any]) -> bool:
    """Whether a base class of millstream has the method, whose docstring then has the parameters."""
    owner, _, method = name.rpartition(".")
    bases = objects[owner].__mro__[1:] if isinstance(objects.get(owner), type) else ()
    return any(method in vars(base) and base.__module__.startswith(millstream.__name__) for base in bases)


def undocumented_parameters(name: str, value: Any, objects: dict[str, Any]) -> list[str]:
    if overrides_documented_method(name, objects):
        return []
    section = (value.__doc__ or "").partition("Args:\n")[2]
    return [
        parameter for parameter in parameters_of(value) if not re.search(rf"^ +\*{{0,2}}{parameter}: ", section, re.M)
    ]


def has_example(name: str, objects: dict[str, Any]) -> bool:
    """Whether the docstring of a class, of a member or of the class around it has an example."""
    family = [member for member in objects if member == name or member.startswith(f"{name}.")]
    around = name.rpartition(".")[0]
    return any(
        ">>>" in (objects[member].__doc__ or "") for member in [*family, *([around] if around in objects else [])]
    )


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


@pytest.mark.parametrize("package", PUBLIC)
def test_every_parameter_of_the_api_is_documented(package: str) -> None:
    objects = api_objects(package)
    missing = {
        name: undocumented_parameters(name, value, objects)
        for name, value in sorted(objects.items())
        if is_method_or_function(value)
    }
    assert {name: parameters for name, parameters in missing.items() if parameters} == {}


@pytest.mark.parametrize("package", PUBLIC)
def test_every_class_of_the_api_has_an_example(package: str) -> None:
    objects = api_objects(package)
    classes = [
        name
        for name, value in sorted(objects.items())
        if isinstance(value, type) and not issubclass(value, BaseException)
    ]
    assert [name for name in classes if not has_example(name, objects)] == []


def modules_with_examples() -> list[str]:
    """Every module of millstream with an example, also those whose names are not public."""
    source = Path(millstream.__file__).parent.parent
    modules = (path for path in sorted(source.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8"))
    return [".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in modules]


@pytest.mark.usefixtures("inline_engine")
@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted
    assert not results.failed
