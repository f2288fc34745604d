"""Output types of functions and key types of key selectors.

Promises: a declared type has precedence over a return annotation; without either, records are untyped.
Does not know: which transformation the type is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.functions import KeySelector, as_function
from millstream.runtime.keys import KeySelection
from millstream.state_descriptors.descriptors import as_type
from millstream.types.factory import TypeInformation, Types
from millstream.types.type_hints import find_return_type

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream


def result_type(declared_type: Any, method: Any, *, element: bool) -> TypeInformation:
    """Return the declared type, or the annotated type of what a method returns; with `element`, of what it yields."""
    if declared_type is not None:
        return as_type(declared_type)
    return find_return_type(method, element=element) or Types.PICKLED_BYTE_ARRAY()


def output_type_of(declared_type: Any, func: Any, method: str, element: bool = False) -> TypeInformation:
    """Return the type of the results of a function, which is a callable or has the method."""
    target = getattr(func, method, func) if not callable(func) or hasattr(func, method) else func
    return result_type(declared_type, target, element=element)


def key_selection(stream: DataStream, selector: Any, key_type: Any) -> KeySelection:
    """Return how keys are extracted, by the name or index of a field or by a function, and their type."""
    declared_type = None if key_type is None else as_type(key_type)
    if isinstance(selector, str | int) and not isinstance(selector, bool):
        record_type = stream.get_type()
        names, field_types = getattr(record_type, "field_names", None), getattr(record_type, "field_types", None)
        if field_types is not None:
            index = selector if isinstance(selector, int) else _index(list(names or ()), selector, record_type)
            if not 0 <= index < len(field_types):
                msg = f"key_by({selector}): fields are 0 to {len(field_types) - 1}"
                raise InvalidArgument(msg)
            return KeySelection(declared_type or field_types[index], field=selector)
        if record_type.is_columnar:
            msg = f"key_by({selector!r}): {record_type} has no fields"
            raise InvalidArgumentType(msg, hint="give a function of the record")
        return KeySelection(declared_type or Types.PICKLED_BYTE_ARRAY(), field=selector)
    function: KeySelector = as_function(selector, KeySelector)
    derived_type = (
        declared_type or find_return_type(getattr(function, "function", function.get_key)) or Types.PICKLED_BYTE_ARRAY()
    )
    return KeySelection(derived_type, selector=function.get_key)


def _index(names: list[str], name: str, record_type: TypeInformation) -> int:
    if name not in names:
        msg = f"key_by('{name}'): {record_type} has no field of this name"
        raise InvalidArgument(msg, hint=f"fields are {', '.join(names)}")
    return names.index(name)
