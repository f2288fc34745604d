"""Bytes for untyped Python values, safe to read back whoever wrote them.

The bytes are a pickle, but one that names almost nothing: beside a few immutable C types of the standard
library, the only global in it is `build`, and a declared class appears as text that is looked up among the
classes of the running program. No class that can be changed is ever within reach of a hostile pickle.

Promises: what `encode` accepts, `decode` reads back equal, in another process too; `decode` imports, calls and
changes nothing but the constructors of the kinds listed here and of declared classes; what it refuses is an
`UnsafeData` or a `CorruptData`, never another error.
Does not know: schemas, records, or canonical forms: equal values may have different bytes."""

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
    dotted,
)
from millstream.serialization.metered import CONTAINERS, NOT_METERED, MeteredBuild
from millstream.serialization.stored_names import CODEC_MODULE, GLOBAL_WINDOW, NAME_ATTRIBUTE, OWN_CLASSES, name_of

PROTOCOL = 5


def encode(value: object) -> bytes:
    """The bytes of one value; `UndeclaredClass` or `NotEncodable` if `decode` could not read it back."""
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
    """`encode` of each value, in order."""
    listed = list(values)
    if set(map(type, listed)) == {tuple} and _all_scalars(map(type, chain.from_iterable(listed))):  # type: ignore[arg-type]
        return list(map(_dumps, listed, repeat(PROTOCOL)))
    return list(map(encode, listed))


def decode(data: bytes | bytearray | memoryview) -> Any:
    """The value of bytes from anywhere; `UnsafeData` or `CorruptData` if they are not what `encode` writes."""
    if type(data) is not bytes:
        data = bytes(data)
    try:
        # Bytes without any opcode that could load a global are safe for the plain, much faster, unpickler.
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
    """`decode` of each, in order."""
    return list(map(decode, datas))


class Classes:
    """The classes of one program or job: their instances, and those of classes in their annotated fields, may be
    encoded and decoded. A class is known by module and qualified name; of two with one name the last declared is what
    data becomes."""

    __slots__ = ("_by_name", "_reducers", "idle_writers")

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._by_name: dict[str, type] = {}
        self._reducers: dict[type, Callable[[Any], _Reduced]] = dict(_REDUCERS)
        self.idle_writers: list[_Writer] = []
        self.declare(*classes)

    def declare(self, *classes: type) -> None:
        """Add classes."""
        for cls in classes:
            if not isinstance(cls, type) or issubclass(cls, type):
                raise NotDeclarable(cls)
            name = name_of(cls)
            if cls in _BUILT_IN or self._by_name.get(name) is cls:
                continue
            self._by_name[name] = cls
            self._reducers[cls] = _reducer_of(cls, name)
            _keep_name(cls, name)
            self.declare(*(hinted for hinted in _classes_in_fields(cls) if _is_program_class(hinted)))

    def declared(self) -> frozenset[type]:
        """All classes so far."""
        return frozenset(self._by_name.values())

    def named(self, name: str) -> type:
        """The class that data names; `UnsafeData` if it is not among these."""
        cls = self._by_name.get(name)
        if cls is None:
            if name not in OWN_CLASSES:
                raise UnsafeData(dotted(name))
            module, _, attribute = OWN_CLASSES[name].partition(":")
            cls = getattr(importlib.import_module(module), attribute)
            self.declare(cls)
        return cls

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def reducer(self, cls: type) -> Callable[[Any], _Reduced]:
        """How instances are taken apart; `UndeclaredClass` if they may not be."""
        return self._reducers.get(cls) or self._adopt(cls)

    def _adopt(self, cls: type) -> Callable[[Any], _Reduced]:
        """The reducer of a class met for the first time: ours, numpy's, or one with a declared class's name."""
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
    """Encode and decode with these classes only, in this thread and in contexts copied from it."""
    before = _current.get()
    _current.set(classes)
    try:
        yield
    finally:
        _current.set(before)  # not by token: a generator may be closed in another context than it was begun in


def declare(*classes: type) -> None:
    """Add classes to those in use."""
    _current.get().declare(*classes)


def declared() -> frozenset[type]:
    """The classes in use."""
    return _current.get().declared()


# ---------------------------------------------------------------------------------------------- declared classes

_Reduced = Any  # what `Pickler.reducer_override` may return: a tuple, a global's name, or NotImplemented


def _keep_name(cls: type, name: str) -> None:
    """A class that cloudpickle ships by value loses its qualified name on the way, but not its attributes."""
    if "." in cls.__qualname__:
        with suppress(TypeError):  # a type of C is shipped by name
            type.__setattr__(cls, NAME_ATTRIBUTE, name)


def _class_named(name: str) -> type:
    return _current.get().named(name)


def _is_program_class(cls: type) -> bool:
    """Whether an annotation alone declares it: not what the standard library may do to files and processes."""
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
    """What a class looks like whose instances are nothing but a `__dict__`."""


_PICKLE_HOOKS = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")


def _has_own(cls: type, hooks: Iterable[str]) -> bool:
    return any(getattr(cls, hook, None) is not getattr(object, hook, None) for hook in hooks)


def _is_only_a_dict(cls: type) -> bool:
    return (
        not _has_own(cls, _PICKLE_HOOKS)
        and (cls.__dictoffset__, cls.__basicsize__, cls.__itemsize__) == _PLAIN_LAYOUT
        and not any(vars(base).get("__slots__") for base in cls.__mro__)
    )


_PLAIN_LAYOUT = (_Plain.__dictoffset__, _Plain.__basicsize__, _Plain.__itemsize__)


def _reducer_of(cls: type, name: str) -> Callable[[Any], _Reduced]:
    if issubclass(cls, enum.Flag):
        return lambda obj: (build, ("flag", name, obj._value_))
    if issubclass(cls, enum.Enum):
        return lambda obj: (build, ("enum", name, obj._name_))
    if name == GLOBAL_WINDOW:  # its own way back is through a function, which data may not name
        return lambda _: (build, ("call", name))
    new = ("new", name)
    if _is_only_a_dict(cls):
        return lambda obj: (build, new, obj.__dict__)

    def reduce(obj: Any) -> _Reduced:
        how = obj.__reduce_ex__(4)
        if isinstance(how, tuple) and (len(how) < 6 or how[5] is None):
            maker, arguments, *rest = how
            if maker is _newobj:
                return (build, (*new, *arguments[1:]), *rest)
            if maker is cls:
                return (build, ("call", name, *arguments), *rest)
        reason = f"its __reduce__ answers {how!s:.200} instead of the class and its arguments"
        raise NotEncodable(obj, reason)

    return reduce


_newobj: object = vars(copyreg)["__newobj__"]


# ------------------------------------------------------------------------------------------- the kinds of values


def _new(name: str, *arguments: Any) -> Any:
    cls = _class_named(name)
    _check_size(cls, arguments)
    return cls.__new__(cls, *arguments)


def _call(name: str, *arguments: Any) -> Any:
    cls = _class_named(name)
    if not _has_own(cls, ("__reduce__", "__reduce_ex__")):  # only such a class has ever been written this way
        called = f"{dotted(name)}()"
        raise UnsafeData(called)
    _check_size(cls, arguments)
    return cls(*arguments)


def _check_size(cls: type, arguments: tuple[Any, ...]) -> None:
    """Refuse the few bytes that would become a container of any size: a range to copy, a number of zero bytes."""
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
    return Counter(_exactly(dict, counts))


def _fraction(numerator: int, denominator: int) -> Fraction:
    return Fraction(_exactly(int, numerator), _exactly(int, denominator))


def _uuid(number: int) -> UUID:
    return UUID(int=number)


def _zone(key: str) -> ZoneInfo:
    return ZoneInfo(_exactly(str, key))


def _reduce_zone(obj: ZoneInfo) -> _Reduced:
    if not obj.key:
        reason = "a time zone without a key cannot be found again"
        raise NotEncodable(obj, reason)
    return build, ("zone", obj.key)


class _Unexpected(ValueError):
    """An argument that `encode` would not have written; `decode` reports it as `CorruptData`."""


def _exactly(cls: type, value: Any) -> Any:
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
    for index, item in enumerate(items):  # one by one, or numpy would unpack nested sequences
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
        return np.str_(_exactly(str, value)) if dtype_text == "U" else np.bytes_(_exactly(bytes, value))
    return _array(dtype_text, (), value)[()]


def _reduce_numpy_scalar(obj: np.generic) -> _Reduced:
    if obj.dtype.kind in "US":
        return build, ("scalar", obj.dtype.kind, obj.item())
    if _DTYPE.fullmatch(obj.dtype.str) is None:
        reason = f"scalars of {obj.dtype} are not supported"
        raise NotEncodable(obj, reason)
    return build, ("scalar", obj.dtype.str, obj.tobytes())


def _reduce_nanosecond_timestamp(obj: Any) -> _Reduced:
    """A timestamp with nanoseconds, which pyarrow makes: its datetime in UTC or without a zone, and three digits."""
    moment = obj if obj.tzinfo is None else obj.tz_convert("UTC")
    return build, ("nanoseconds", moment.value, obj.tzinfo is not None)


def _nanosecond_timestamp(nanoseconds: int, has_zone: bool) -> Any:
    import pandas as pd  # takes long, and few programs need it

    return pd.Timestamp(operator.index(nanoseconds), unit="ns", tz=datetime.UTC if has_zone else None)


_KINDS: dict[str, Callable[..., Any]] = {
    "new": _new,
    "call": _call,
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
    """The one global of ours. Without attributes, so that no pickle can change it."""

    __slots__ = ()
    __module__ = CODEC_MODULE

    def __call__(self, kind: str, *arguments: Any) -> Any:
        return _KINDS[kind](*arguments)

    def __reduce__(self) -> str:
        return "build"


build = _Build()
sys.modules.setdefault(CODEC_MODULE, sys.modules[__name__])  # pickle writes a global only if its module has it


# ------------------------------------------------------------------------------------------ writing and reading

_SCALARS = frozenset({type(None), bool, int, float, str, bytes})
_all_scalars = _SCALARS.issuperset
_dumps, _loads, _inspect, _is_plain = pickle.dumps, pickle.loads, pickles.inspect, pickles.is_plain
_SMALL = pickles.MAX_DEPTH

# Immutable C types, which pickle writes itself; their constructors take plain values and only make a value.
_NAMED: tuple[type, ...] = (
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
    **{(cls.__module__, cls.__qualname__): cls for cls in _NAMED},
    (_Build.__module__, "build"): build,
}


def _by_pickle(_: object) -> _Reduced:
    return NotImplemented


def _reduce_class(obj: type) -> _Reduced:
    if obj in _NAMED:
        return NotImplemented
    reason = "a class is not a value"
    raise NotEncodable(obj, reason)


_REDUCERS: dict[type, Callable[[Any], _Reduced]] = {
    **dict.fromkeys((*_NAMED, _Build), _by_pickle),
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
        """Asked only for what pickle has no opcode for, so plain values cost nothing."""
        return self._reducer(type(obj))(obj)


class _Chunks:
    """The file a pickler writes to: one append a frame."""

    __slots__ = ("write",)

    def __init__(self, chunks: list[bytes]) -> None:
        self.write = chunks.append


class _Writer:
    """A pickler that is reused, but never by two threads at once: a writer takes it from the list of idle ones."""

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


_PROGRAM = Classes()  # the default: the classes that the program declares in this process
_current: ContextVar[Classes] = ContextVar("classes", default=_PROGRAM)
