"""Encodes untyped Python values as bytes that are safe to decode even if an attacker wrote them.

The bytes are a pickle with almost no globals: a few immutable C types of the standard library, and the function
`build`. A declared class is stored as text, and is looked up among the classes that the running program declares. A
hostile pickle cannot reach any class or function that it could modify.

Promises: `decode` returns a value equal to the one that was encoded, in another process too. It calls nothing but the
constructors that are listed here and those of declared classes. It refuses other bytes with `UnsafeData` or
`CorruptData`, never with another error.
Does not know: schemas, records. Equal values may have different bytes."""

from __future__ import annotations

import copyreg
import datetime
import decimal
import enum
import importlib
import math
import operator
import pickle
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from fractions import Fraction
from io import BytesIO
from itertools import chain, repeat
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np

from millstream.errors import MillstreamError, UserError
from millstream.serialization import pickles
from millstream.serialization.codec_errors import (
    CorruptData,
    NotDeclarable,
    NotEncodable,
    UndeclaredClass,
    UnsafeData,
    format_class_name,
)
from millstream.serialization.metered import CONTAINERS, NOT_METERED, MeteredBuild
from millstream.serialization.stored_names import CODEC_MODULE, GLOBAL_WINDOW, NAME_ATTRIBUTE, OWN_CLASSES, name_of

PROTOCOL = 5


def encode(value: object) -> bytes:
    """Encode a value; raise `UndeclaredClass` or `NotEncodable` if `decode` could not decode it."""
    cls = type(value)
    if cls in _SCALARS or (cls is tuple and _all_scalars(map(type, value))):  # type: ignore[call-overload]
        return _dumps(value, PROTOCOL)
    idle = (classes := _current.get()).idle_writers
    try:
        writer = idle.pop()
    except IndexError:
        writer = _Writer(classes)
    try:
        data = writer.write(value)
    except UserError:
        raise
    except (pickle.PicklingError, RecursionError, TypeError) as error:
        raise NotEncodable(value, str(error)) from error
    idle.append(writer)
    return data


def encode_many(values: Iterable[object]) -> list[bytes]:
    """Encode each value, in order."""
    listed = list(values)
    if set(map(type, listed)) == {tuple} and _all_scalars(map(type, chain.from_iterable(listed))):  # type: ignore[arg-type]
        return list(map(_dumps, listed, repeat(PROTOCOL)))
    return list(map(encode, listed))


def decode(data: bytes | bytearray | memoryview) -> Any:
    """Decode bytes from any origin; raise `UnsafeData` or `CorruptData` if `encode` could not have written them."""
    if type(data) is not bytes:
        data = bytes(data)
    try:
        # Bytes without an opcode that loads a global are safe for the standard unpickler, which is much faster.
        if (len(data) < _SMALL and _is_plain(data)) or not _inspect(data):
            return _loads(data)
        unpickler = _Unpickler(BytesIO(data))
        unpickler.size = len(data)
        return unpickler.load()
    except MillstreamError:
        raise
    except pickles.LoadsExtension as error:
        raise UnsafeData(str(error)) from None
    except Exception as error:
        raise CorruptData(len(data), f"{type(error).__name__}: {error}") from error


def decode_many(datas: Iterable[bytes | bytearray | memoryview]) -> list[Any]:
    """Decode each value, in order."""
    return list(map(decode, datas))


class Classes:
    """The declared classes of one program or job. Their instances, and those of classes in their annotated fields, can
    be encoded and decoded. A class is identified by its module and qualified name; of two classes with the same name,
    the one that was declared last is used for decoding."""

    __slots__ = ("_by_name", "_reducers", "idle_writers")

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._by_name: dict[str, type] = {}
        self._reducers: dict[type, Callable[[Any], _Reduced]] = dict(_REDUCERS)
        self.idle_writers: list[_Writer] = []
        self.declare(*classes)

    def declare(self, *classes: type) -> None:
        """Declare classes."""
        for cls in classes:
            if not isinstance(cls, type) or issubclass(cls, type):
                raise NotDeclarable(cls)
            name = name_of(cls)
            if cls in _BUILT_IN or self._by_name.get(name) is cls:
                continue
            self._by_name[name] = cls
            self._reducers[cls] = _reducer_of(cls, name)
            _store_name(cls, name)
            self.declare(*(hinted for hinted in _classes_in_fields(cls) if _is_program_class(hinted)))

    def declared(self) -> frozenset[type]:
        """Return the classes that were declared so far."""
        return frozenset(self._by_name.values())

    def named(self, name: str) -> type:
        """Return the class with a name; raise `UnsafeData` if it is not declared."""
        cls = self._by_name.get(name)
        if cls is None:
            if name not in OWN_CLASSES:
                raise UnsafeData(format_class_name(name))
            module, _, attribute = OWN_CLASSES[name].partition(":")
            cls = getattr(importlib.import_module(module), attribute)
            self.declare(cls)
        return cls

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def reducer(self, cls: type) -> Callable[[Any], _Reduced]:
        """Return the function that reduces instances of a class for pickling; raise `UndeclaredClass` if they cannot be
        encoded."""
        return self._reducers.get(cls) or self._find_reducer(cls)

    def _find_reducer(self, cls: type) -> Callable[[Any], _Reduced]:
        """Find and remember the reducer of a class: one of millstream or NumPy, or one with the name of a declared
        class."""
        name = name_of(cls)
        if name in OWN_CLASSES and name not in self._by_name:
            self.declare(cls)
        elif name in self._by_name:
            self._reducers[cls] = _reducer_of(cls, name)
        elif issubclass(cls, np.generic):
            self._reducers[cls] = _reduce_numpy_scalar
        elif issubclass(cls, type):
            return _reduce_class
        elif cls is getattr(sys.modules.get("pandas"), "Timestamp", None):
            self._reducers[cls] = _reduce_nanosecond_timestamp
        else:
            raise UndeclaredClass(cls)
        return self._reducers[cls]


@contextmanager
def using(classes: Classes) -> Iterator[None]:
    """Use only these classes to encode and decode in the `with` block, in this thread and in contexts copied from
    it."""
    before = _current.get()
    _current.set(classes)
    try:
        yield
    finally:
        _current.set(before)  # no token: a generator may be closed in another context


def declare(*classes: type) -> None:
    """Declare classes among those in use."""
    _current.get().declare(*classes)


def declared() -> frozenset[type]:
    """Return the declared classes in use."""
    return _current.get().declared()


# ---------------------------------------------------------------------------------------------- declared classes

_Reduced = Any  # what `Pickler.reducer_override` may return: a tuple, a global's name, or NotImplemented


def _store_name(cls: type, name: str) -> None:
    """Store the name in the class: a class that cloudpickle pickles by value keeps its attributes, but not its
    qualified name."""
    if "." in cls.__qualname__:
        with suppress(TypeError):  # a C type is pickled by name
            type.__setattr__(cls, NAME_ATTRIBUTE, name)


def _class_named(name: str) -> type:
    return _current.get().named(name)


def _is_program_class(cls: type) -> bool:
    """Whether an annotation is enough to declare a class. Classes of the standard library are excluded, because some of
    them access files and processes."""
    return not issubclass(cls, type) and cls.__module__.partition(".")[0] not in sys.stdlib_module_names


def _classes_in_fields(cls: type) -> Iterator[type]:
    if not hasattr(cls, "__dataclass_fields__") and not hasattr(cls, "_fields"):
        return
    try:
        hints = get_type_hints(cls)
    except (NameError, AttributeError, TypeError, SyntaxError):  # an annotation for type checkers only
        hints = {name: hint for name, hint in getattr(cls, "__annotations__", {}).items() if isinstance(hint, type)}
    for hint in hints.values():
        yield from _classes_in(hint)


def _classes_in(hint: object) -> Iterator[type]:
    origin = get_origin(hint) or hint
    if isinstance(origin, type):
        yield origin
    for argument in get_args(hint):
        yield from _classes_in(argument)


class _Plain:
    """A class whose instances have a `__dict__` and nothing else; its layout is compared with that of other classes."""


_PICKLE_HOOKS = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")


def _overrides(cls: type, hooks: Iterable[str]) -> bool:
    return any(getattr(cls, hook, None) is not getattr(object, hook, None) for hook in hooks)


def _has_only_a_dict(cls: type) -> bool:
    return (
        not _overrides(cls, _PICKLE_HOOKS)
        and (cls.__dictoffset__, cls.__basicsize__, cls.__itemsize__) == _PLAIN_LAYOUT
        and not any(vars(base).get("__slots__") for base in cls.__mro__)
    )


_PLAIN_LAYOUT = (_Plain.__dictoffset__, _Plain.__basicsize__, _Plain.__itemsize__)


def _reducer_of(cls: type, name: str) -> Callable[[Any], _Reduced]:
    if issubclass(cls, enum.Flag):
        return lambda obj: (build, ("flag", name, obj._value_))
    if issubclass(cls, enum.Enum):
        return lambda obj: (build, ("enum", name, obj._name_))
    if name == GLOBAL_WINDOW:  # its own pickle calls a function, which encoded data must not name
        return lambda _: (build, ("call", name))
    new = ("new", name)
    if _has_only_a_dict(cls):
        return lambda obj: (build, new, obj.__dict__)

    def reduce(obj: Any) -> _Reduced:
        how = obj.__reduce_ex__(4)
        if isinstance(how, tuple) and (len(how) < 6 or how[5] is None):
            maker, arguments, *rest = how
            if maker is _newobj:
                return (build, (*new, *arguments[1:]), *rest)
            if maker is cls:
                return (build, ("call", name, *arguments), *rest)
        reason = f"its __reduce__ returns {how!s:.200} instead of the class and its arguments"
        raise NotEncodable(obj, reason)

    return reduce


_newobj: object = vars(copyreg)["__newobj__"]


# ------------------------------------------------------------------------------------------- constructors of values


def _create_instance(name: str, *arguments: Any) -> Any:
    cls = _class_named(name)
    _check_size(cls, arguments)
    return cls.__new__(cls, *arguments)


def _call_class(name: str, *arguments: Any) -> Any:
    cls = _class_named(name)
    if not _overrides(cls, ("__reduce__", "__reduce_ex__")):  # `encode` writes calls of such classes only
        called = f"{format_class_name(name)}()"
        raise UnsafeData(called)
    _check_size(cls, arguments)
    return cls(*arguments)


def _check_size(cls: type, arguments: tuple[Any, ...]) -> None:
    """Refuse arguments with which few bytes create a container of any size: a range to copy, or a number of zero
    bytes."""
    if not issubclass(cls, CONTAINERS) or hasattr(cls, "_fields"):
        return
    sized = (range, int) if issubclass(cls, bytes | bytearray) else (range,)
    if issubclass(cls, np.ndarray) or any(type(argument) in sized for argument in arguments):
        raise _Unexpected(cls, arguments)


def _enum_member(name: str, member: str) -> Any:
    return _class_named(name)[member]  # type: ignore[index]


def _flag_member(name: str, value: int) -> Any:
    return _class_named(name)(value)


_FACTORIES: dict[str | None, Any] = {
    None: None,
    **{cls.__name__: cls for cls in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)},
    **{cls.__name__: cls for cls in (deque, Counter, OrderedDict)},
}


def _defaultdict(factory: str | None) -> defaultdict[Any, Any]:
    return defaultdict(_FACTORIES[factory] if factory in _FACTORIES else _class_named(str(factory)))


def _reduce_defaultdict(obj: defaultdict[Any, Any]) -> _Reduced:
    factory = obj.default_factory
    name = getattr(factory, "__name__", None)
    if _FACTORIES.get(name) is not factory:
        if not isinstance(factory, type) or name_of(factory) not in _current.get():
            reason = f"its factory {factory!r} is neither a built-in nor a declared class"
            raise NotEncodable(obj, reason)
        name = name_of(factory)
    return build, ("defaultdict", name), None, None, iter(obj.items())


def _deque(limit: int | None) -> deque[Any]:
    return deque(maxlen=limit)


def _counter(counts: dict[Any, int]) -> Counter[Any]:
    return Counter(_require_type(dict, counts))


def _fraction(numerator: int, denominator: int) -> Fraction:
    return Fraction(_require_type(int, numerator), _require_type(int, denominator))


def _uuid(number: int) -> UUID:
    return UUID(int=number)


def _zone(key: str) -> ZoneInfo:
    return ZoneInfo(_require_type(str, key))


def _reduce_zone(obj: ZoneInfo) -> _Reduced:
    if not obj.key:
        reason = "a time zone without a key cannot be stored"
        raise NotEncodable(obj, reason)
    return build, ("zone", obj.key)


class _Unexpected(ValueError):
    """An argument that `encode` would not have written; `decode` reports it as `CorruptData`."""


def _require_type(cls: type, value: Any) -> Any:
    if type(value) is not cls:
        raise _Unexpected(cls, value)
    return value


_DTYPE = re.compile(r"[<>|=][biufcSUmM]\d+(\[\d*[a-zA-Z]+\])?")


def _dtype(text: str) -> np.dtype[Any]:
    if _DTYPE.fullmatch(text) is None:
        raise _Unexpected(text)
    return np.dtype(text)


def _array(dtype_text: str, shape: tuple[int, ...], data: bytes) -> np.ndarray[Any, Any]:
    dtype = _dtype(dtype_text)
    if not dtype.itemsize or math.prod(shape) * dtype.itemsize != len(data):
        raise _Unexpected(dtype, shape, len(data))
    return np.ndarray(shape, dtype, bytearray(data))


def _object_array(shape: tuple[int, ...], items: list[Any]) -> np.ndarray[Any, Any]:
    if math.prod(shape) != len(items):
        raise _Unexpected(shape, len(items))
    flat = np.empty(len(items), object)
    for index, item in enumerate(items):  # one by one, because NumPy would unpack nested sequences
        flat[index] = item
    return flat.reshape(shape)


def _reduce_array(obj: np.ndarray[Any, Any]) -> _Reduced:
    if obj.dtype == object:
        return build, ("objects", obj.shape, list(obj.flat))
    if _DTYPE.fullmatch(obj.dtype.str) is None:
        reason = f"arrays of {obj.dtype} are not supported"
        raise NotEncodable(obj, reason)
    return build, ("array", obj.dtype.str, obj.shape, obj.tobytes())


def _numpy_scalar(dtype_text: str, value: Any) -> Any:
    if dtype_text in ("U", "S"):
        return np.str_(_require_type(str, value)) if dtype_text == "U" else np.bytes_(_require_type(bytes, value))
    return _array(dtype_text, (), value)[()]


def _reduce_numpy_scalar(obj: np.generic) -> _Reduced:
    if obj.dtype.kind in "US":
        return build, ("scalar", obj.dtype.kind, obj.item())
    if _DTYPE.fullmatch(obj.dtype.str) is None:
        reason = f"scalars of {obj.dtype} are not supported"
        raise NotEncodable(obj, reason)
    return build, ("scalar", obj.dtype.str, obj.tobytes())


def _reduce_nanosecond_timestamp(obj: Any) -> _Reduced:
    """Reduce a timestamp with nanoseconds, which pyarrow creates, to its nanoseconds and whether it has a time zone."""
    moment = obj if obj.tzinfo is None else obj.tz_convert("UTC")
    return build, ("nanoseconds", moment.value, obj.tzinfo is not None)


def _nanosecond_timestamp(nanoseconds: int, has_zone: bool) -> Any:
    import pandas as pd  # importing it takes long, and few programs need it

    return pd.Timestamp(operator.index(nanoseconds), unit="ns", tz=datetime.UTC if has_zone else None)


_CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "new": _create_instance,
    "call": _call_class,
    "enum": _enum_member,
    "flag": _flag_member,
    "deque": _deque,
    "counter": _counter,
    "ordered": OrderedDict[Any, Any],
    "defaultdict": _defaultdict,
    "fraction": _fraction,
    "uuid": _uuid,
    "zone": _zone,
    "array": _array,
    "objects": _object_array,
    "scalar": _numpy_scalar,
    "nanoseconds": _nanosecond_timestamp,
}


class _Build:
    """The only global of millstream in encoded data. It has no attributes, so that no pickle can modify it."""

    __slots__ = ()
    __module__ = CODEC_MODULE

    def __call__(self, kind: str, *arguments: Any) -> Any:
        return _CONSTRUCTORS[kind](*arguments)

    def __reduce__(self) -> str:
        return "build"


build = _Build()
sys.modules.setdefault(CODEC_MODULE, sys.modules[__name__])  # pickle requires that the module of a global exists


# ------------------------------------------------------------------------------------------ writing and reading

_SCALARS = frozenset({type(None), bool, int, float, str, bytes})
_all_scalars = _SCALARS.issuperset
_dumps, _loads, _inspect, _is_plain = pickle.dumps, pickle.loads, pickles.inspect, pickles.is_plain
_SMALL = pickles.MAX_DEPTH

# Immutable C types, which pickle writes by itself; their constructors take plain values and have no side effects.
_C_TYPES: tuple[type, ...] = (
    datetime.datetime,
    datetime.date,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    complex,
    range,
    slice,
)
_GLOBALS: dict[tuple[str, str], Any] = {
    **{(cls.__module__, cls.__qualname__): cls for cls in _C_TYPES},
    (_Build.__module__, "build"): build,
}


def _leave_to_pickle(_: object) -> _Reduced:
    return NotImplemented


def _reduce_class(obj: type) -> _Reduced:
    if obj in _C_TYPES:
        return NotImplemented
    reason = "a class is not a value"
    raise NotEncodable(obj, reason)


_REDUCERS: dict[type, Callable[[Any], _Reduced]] = {
    **dict.fromkeys((*_C_TYPES, _Build), _leave_to_pickle),
    type: _reduce_class,
    deque: lambda obj: (build, ("deque", obj.maxlen), None, iter(obj)),
    Counter: lambda obj: (build, ("counter", dict(obj))),
    OrderedDict: lambda obj: (build, ("ordered",), None, None, iter(obj.items())),
    defaultdict: _reduce_defaultdict,
    Fraction: lambda obj: (build, ("fraction", obj.numerator, obj.denominator)),
    UUID: lambda obj: (build, ("uuid", obj.int)),
    ZoneInfo: _reduce_zone,
    np.ndarray: _reduce_array,
}
_BUILT_IN = frozenset({*_REDUCERS, *_SCALARS, object, tuple, list, dict, set, frozenset, bytearray})


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, classes: Classes) -> None:
        super().__init__(file, PROTOCOL)
        self._reducer = classes.reducer

    def reducer_override(self, obj: Any) -> _Reduced:
        """Return the reduced form of an object; called only for types without an opcode, so plain values cost
        nothing."""
        return self._reducer(type(obj))(obj)


class _Chunks:
    """The file to which a pickler writes: each frame is appended to a list."""

    __slots__ = ("write",)

    def __init__(self, chunks: list[bytes]) -> None:
        self.write = chunks.append


class _Writer:
    """A pickler that is reused, never by two threads at once: `encode` removes it from the list of idle writers while
    it uses it."""

    __slots__ = ("_chunks", "_dump", "_forget")

    def __init__(self, classes: Classes) -> None:
        self._chunks: list[bytes] = []
        pickler = _Pickler(_Chunks(self._chunks), classes)
        self._dump, self._forget = pickler.dump, pickler.clear_memo

    def write(self, value: object) -> bytes:
        self._dump(value)
        self._forget()
        chunks = self._chunks
        data = chunks.pop()
        if chunks:
            data = b"".join((*chunks, data))
            chunks.clear()
        return data


class _Unpickler(pickle.Unpickler):
    size: int
    _build: MeteredBuild | None = None

    def find_class(self, module: str, name: str) -> Any:
        known_global = _GLOBALS.get((module, name))
        if known_global is None:
            named = f"{module}.{name}"
            raise UnsafeData(named)
        if known_global is not build or self.size < NOT_METERED:
            return known_global
        if self._build is None:
            self._build = MeteredBuild(self.size, build, _class_named)
        return self._build

    def persistent_load(self, pid: object) -> Any:
        named = f"persistent id {pid!s:.100}"
        raise UnsafeData(named)


_PROGRAM = Classes()  # used by default: the classes that the program declares in this process
_current: ContextVar[Classes] = ContextVar("classes", default=_PROGRAM)
