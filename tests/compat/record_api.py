"""Record the names and signatures of PyFlink's public API from the real PyFlink.

Promises: tests/golden/api.json has, for every public module of `common`, `datastream`, `metrics` and `table`, its
public classes with their methods, parameters and attributes, and its functions; two recordings give the same bytes.
Does not know: millstream, or which names it leaves out (`exclusions.toml`)."""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import json
import pkgutil
import types
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "api.json"
PACKAGES = ("common", "datastream", "metrics", "table")
CALLABLE = (types.FunctionType, classmethod, staticmethod)


def parameters(function: Any, *, bound: bool) -> list[str]:
    """`a`, `a=` where it has a default, `*a`, `**a`; the parameters of a call, so without self."""
    found = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        f"{stars.get(each.kind, '')}{each.name}{'' if each.default is inspect.Parameter.empty else '='}"
        for each in found
    ]


def method_parameters(value: Any) -> list[str] | None:
    """The parameters of a class member as a caller sees them; None where Python cannot tell."""
    try:
        if isinstance(value, classmethod | staticmethod):
            return parameters(value.__func__, bound=isinstance(value, classmethod))
        return parameters(value, bound=True)
    except (TypeError, ValueError):
        return None


def members(cls: type) -> dict[str, Any]:
    """Public members of a class and of the bases it has in the same package, nearest first."""
    root = cls.__module__.split(".")[0]
    found: dict[str, Any] = {}
    for base in cls.__mro__:
        if base.__module__.split(".")[0] == root:
            for name, value in vars(base).items():
                if name == "__init__" or not name.startswith("_"):
                    found.setdefault(name, value)
    return found


def describe(value: Any) -> dict[str, Any]:
    """A class or function as JSON."""
    if not inspect.isclass(value):
        return {"parameters": parameters(value, bound=False)}
    found = members(value)
    methods = {name: method_parameters(each) for name, each in found.items() if isinstance(each, CALLABLE)}
    others = {name for name, each in found.items() if not isinstance(each, CALLABLE) and not inspect.isclass(each)}
    if issubclass(value, enum.Enum):
        others = set(value.__members__)
        methods.pop("__init__", None)
    return {"methods": dict(sorted(methods.items())), "attributes": sorted(others)}


def modules(package: str) -> list[Any]:
    """The public modules of the package's parts that are compared."""
    found = []
    for part in PACKAGES:
        root = importlib.import_module(f"{package}.{part}")
        found.append(root)
        found += [
            importlib.import_module(each.name)
            for each in pkgutil.walk_packages(root.__path__, root.__name__ + ".")
            if not any(word.startswith("_") or word == "tests" for word in each.name.split("."))
        ]
    return found


def public_names(module: Any) -> list[str]:
    """What `__all__` says; else the classes and functions a module defines itself."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    )


def api(package: str) -> dict[str, dict[str, Any]]:
    """{module without its package: {name: description}}."""
    described: dict[str, dict[str, Any]] = {}
    for module in modules(package):
        names = {
            name: describe(value)
            for name in public_names(module)
            if inspect.isclass(value := getattr(module, name)) or inspect.isfunction(value)
        }
        if names:
            described[module.__name__.removeprefix(f"{package}.")] = names
    return described


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run it with an interpreter that has apache-flink==2.3.0.")
    parser.add_argument("--out", type=Path, default=GOLDEN)
    arguments = parser.parse_args()
    text = json.dumps(api("pyflink"), indent=0, sort_keys=True)
    arguments.out.write_text(text + "\n", encoding="utf-8")
