"""The types of a call: of the results of its function, and of the key that its selector gives.

Promises: a type that is given wins; else a return annotation says it; else records are untyped.
Does not know: what the call records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import UserError
from millstream.functions import KeySelector, as_function
from millstream.runtime.keys import KeySelection
from millstream.state_descriptors.descriptors import as_type
from millstream.types.factory import TypeInformation, Types
from millstream.types.type_hints import return_type_of

if TYPE_CHECKING:
    from millstream.datastream.data_stream import DataStream


def result_type(given: Any, method: Any, *, element: bool) -> TypeInformation:
    """The type of what a method returns, or with `element` of what it yields: as given, else as annotated."""
    if given is not None:
        return as_type(given)
    return return_type_of(method, element=element) or Types.PICKLED_BYTE_ARRAY()


def output_type_of(given: Any, func: Any, method: str, element: bool = False) -> TypeInformation:
    """The type of the results of a function, which is a callable or has the method."""
    target = getattr(func, method, func) if not callable(func) or hasattr(func, method) else func
    return result_type(given, target, element=element)


def key_selection(stream: DataStream, selector: Any, key_type: Any) -> KeySelection:
    """How the key of a record is found, and its type: by the name or position of a field, or by a function."""
    given = None if key_type is None else as_type(key_type)
    if isinstance(selector, str | int) and not isinstance(selector, bool):
        kind = stream.get_type()
        names, kinds = getattr(kind, "field_names", None), getattr(kind, "field_types", None)
        if kinds is not None:
            index = selector if isinstance(selector, int) else _index(list(names or ()), selector, kind)
            if not 0 <= index < len(kinds):
                msg = f"key_by({selector}): fields are 0 to {len(kinds) - 1}"
                raise UserError(msg)
            return KeySelection(given or kinds[index], field=selector)
        if kind.is_columnar:
            msg = f"key_by({selector!r}): {kind} has no fields"
            raise UserError(msg, hint="give a function of the record")
        return KeySelection(given or Types.PICKLED_BYTE_ARRAY(), field=selector)
    function: KeySelector = as_function(selector, KeySelector)
    found = given or return_type_of(getattr(function, "function", function.get_key)) or Types.PICKLED_BYTE_ARRAY()
    return KeySelection(found, selector=function.get_key)


def _index(names: list[str], name: str, kind: TypeInformation) -> int:
    if name not in names:
        msg = f"key_by('{name}'): there is no such field in {kind}"
        raise UserError(msg, hint=f"fields are {', '.join(names)}")
    return names.index(name)
