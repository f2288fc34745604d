"""What a process table function declares: its state entries, its table arguments and its scalar arguments.

Promises: the signature is read from the type hints of `eval`, in Flink's order: a context, state entries, arguments.
Does not know: how the function is called, or where its state is."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

from millstream.errors import InvalidArgument
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis

PROCESS = "process table"
IMPLICIT_ARGUMENTS = ("on_time", "uid")


class ArgumentTrait(Enum):
    """What a process table function expects of an argument; used in `Annotated` type hints.

    Example:
        >>> from typing import Annotated
        >>> from millstream.common import Row
        >>> def eval(self, visits: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]): ...

    """

    ROW_SEMANTIC_TABLE = "ROW_SEMANTIC_TABLE"
    """A table whose rows are processed independently of one another."""
    SET_SEMANTIC_TABLE = "SET_SEMANTIC_TABLE"
    """A table whose rows are processed together, by the columns of PARTITION BY."""
    OPTIONAL_PARTITION_BY = "OPTIONAL_PARTITION_BY"
    """PARTITION BY may be left out; then one subtask processes the whole table."""
    PASS_COLUMNS_THROUGH = "PASS_COLUMNS_THROUGH"
    """The output starts with all columns of the table."""
    SUPPORT_UPDATES = "SUPPORT_UPDATES"
    """The table may have updates; rows carry their row kind."""
    REQUIRE_ON_TIME = "REQUIRE_ON_TIME"
    """The call must have the argument `on_time`."""


@dataclasses.dataclass(frozen=True)
class StateHint:
    """Options of a state entry, used in `Annotated` type hints.

    Attributes:
        ttl: How long the entry is kept after the last write, as in "1 day"; by default without limit.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> from millstream.common import Row
        >>> from millstream.table.udf import ArgumentTrait, ProcessTableFunction
        >>> @dataclass
        ... class Count:
        ...     count: int = 0
        >>> Table = Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]
        >>> class Counting(ProcessTableFunction):
        ...     def eval(self, state: Annotated[Count, StateHint(ttl="1 day")], input: Table):
        ...         state.count += 1
        ...         yield state.count

    """

    ttl: str | None = None


class ListState:
    """Marks a state entry as a list, such as `history: ListState`; its methods are those of `ListView`.

    Example:
        >>> from typing import Annotated
        >>> from millstream.common import Row
        >>> from millstream.table.udf import ArgumentTrait, ProcessTableFunction
        >>> class LastThree(ProcessTableFunction):
        ...     def eval(self, names: ListState, input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]):
        ...         names.add(input.name)
        ...         yield list(names.get())[-3:]

    """


class MapState:
    """Marks a state entry as a map, such as `counts: MapState`; its methods are those of `MapView`.

    Example:
        >>> from typing import Annotated
        >>> from millstream.common import Row
        >>> from millstream.table.udf import ArgumentTrait, ProcessTableFunction
        >>> class Visits(ProcessTableFunction):
        ...     def eval(self, pages: MapState, input: Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE]):
        ...         pages.put(input.page, (pages.get(input.page) or 0) + 1)
        ...         yield input.page, pages.get(input.page)

    """


@dataclasses.dataclass(frozen=True)
class StateEntry:
    """A state entry: a dataclass, `ListState` or `MapState`, with its time to live in milliseconds."""

    name: str
    form: type
    ttl: int | None = None


@dataclasses.dataclass(frozen=True)
class Argument:
    """An argument of a call. Table arguments have traits, scalar arguments may have a type and a default."""

    name: str
    traits: frozenset[ArgumentTrait] = frozenset()
    data_type: t.DataType | None = None
    is_optional: bool = False
    default: Any = None

    @property
    def is_table(self) -> bool:
        """Whether the argument is a table."""
        return bool(self.traits & {ArgumentTrait.ROW_SEMANTIC_TABLE, ArgumentTrait.SET_SEMANTIC_TABLE})

    @property
    def is_set(self) -> bool:
        """Whether the argument is a table with set semantics."""
        return ArgumentTrait.SET_SEMANTIC_TABLE in self.traits


@dataclasses.dataclass(frozen=True)
class Signature:
    """The parameters of `eval`, and whether `on_timer` exists and takes a context."""

    takes_context: bool
    states: tuple[StateEntry, ...]
    arguments: tuple[Argument, ...]
    has_timers: bool
    timer_takes_context: bool

    @property
    def tables(self) -> tuple[Argument, ...]:
        """The table arguments."""
        return tuple(argument for argument in self.arguments if argument.is_table)

    @property
    def scalars(self) -> tuple[Argument, ...]:
        """The scalar arguments."""
        return tuple(argument for argument in self.arguments if not argument.is_table)


_SCALARS: Mapping[Any, t.DataType] = {
    int: t.BIGINT,
    float: t.DOUBLE,
    str: t.STRING,
    bool: t.BooleanType(),
    bytes: t.BYTES,
}


def read_signature(function: Any) -> Signature:
    """Read the signature of a process table function.

    Raises:
        InvalidArgument: If a parameter is neither a context, a state entry, a table nor a scalar.

    """
    name = type(function).__name__
    parameters = list(inspect.signature(function.eval).parameters.values())
    hints = typing.get_type_hints(function.eval, include_extras=True)
    takes_context = bool(parameters) and parameters[0].name in ("ctx", "context")
    states: list[StateEntry] = []
    arguments: list[Argument] = []
    for parameter in parameters[takes_context:]:
        entry = _read_parameter(name, parameter, hints.get(parameter.name))
        if isinstance(entry, Argument):
            arguments.append(entry)
        elif arguments:
            message = f"{name}.eval has the state entry '{entry.name}' after the argument '{arguments[-1].name}'"
            raise InvalidArgument(message, hint="the order is: context, state entries, arguments of the call")
        else:
            states.append(entry)
    _check(name, states, arguments)
    on_timer = getattr(function, "on_timer", None)
    timer_parameters = [] if on_timer is None else list(inspect.signature(on_timer).parameters)
    timer_takes_context = timer_parameters[:1] in (["ctx"], ["context"])
    names = timer_parameters[timer_takes_context:]
    if on_timer is not None and names != [state.name for state in states]:
        expected = ", ".join(["ctx", *(state.name for state in states)])
        message = f"{name}.on_timer takes ({', '.join(timer_parameters)}), but must take the state entries of eval"
        raise InvalidArgument(message, hint=f"def on_timer(self, {expected})")
    return Signature(takes_context, tuple(states), tuple(arguments), on_timer is not None, timer_takes_context)


def _read_parameter(function: str, parameter: inspect.Parameter, hint: Any) -> StateEntry | Argument:
    metadata: tuple[Any, ...] = getattr(hint, "__metadata__", ())
    form = typing.get_args(hint)[0] if metadata else hint
    traits = frozenset(note for note in metadata if isinstance(note, ArgumentTrait))
    if traits:
        return Argument(parameter.name, traits)
    if form in (ListState, MapState) or (isinstance(form, type) and dataclasses.is_dataclass(form)):
        state_hint = next((note for note in metadata if isinstance(note, StateHint)), StateHint())
        ttl = None if state_hint.ttl is None else parse_duration_millis(state_hint.ttl, 0)
        return StateEntry(parameter.name, form, ttl)
    data_type = next((note for note in metadata if isinstance(note, t.DataType | str)), None)
    if isinstance(data_type, str):
        data_type = parse_type(data_type)
    data_type = data_type or _SCALARS.get(form)
    if data_type is None:
        message = f"the parameter '{parameter.name}' of {function}.eval has no type hint that declares what it is"
        hint_text = (
            "tables are Annotated[Row, ArgumentTrait.SET_SEMANTIC_TABLE], state entries are dataclasses, ListState or "
            "MapState, scalars are int, float, str, bool or Annotated[type, DataTypes.DATE()]"
        )
        raise InvalidArgument(message, hint=hint_text)
    is_optional = parameter.default is not inspect.Parameter.empty
    return Argument(parameter.name, frozenset(), data_type, is_optional, parameter.default if is_optional else None)


def _check(name: str, states: list[StateEntry], arguments: list[Argument]) -> None:
    tables = [argument for argument in arguments if argument.is_table]
    if states and not any(table.is_set for table in tables):
        message = f"{name} has state, so it needs a table argument with set semantics"
        raise InvalidArgument(message, hint="use ArgumentTrait.SET_SEMANTIC_TABLE and call it with PARTITION BY")
    if len(tables) > 1 and not all(table.is_set for table in tables):
        message = f"{name} takes {len(tables)} tables, so all of them must have set semantics"
        raise InvalidArgument(message, hint="use ArgumentTrait.SET_SEMANTIC_TABLE for each")
    passing = [table.name for table in tables if ArgumentTrait.PASS_COLUMNS_THROUGH in table.traits]
    if passing and (len(tables) > 1 or ArgumentTrait.SUPPORT_UPDATES in tables[0].traits):
        message = f"{name} passes the columns of '{passing[0]}' through, which needs a single table without updates"
        raise InvalidArgument(message)
    reserved_names = [argument.name for argument in arguments if argument.name.lower() in IMPLICIT_ARGUMENTS]
    if reserved_names:
        message = f"{name}.eval has an argument '{reserved_names[0]}', which every call has already"
        raise InvalidArgument(message, hint="rename it")


def load_state(entry: StateEntry, stored: Mapping[str, Any] | None) -> Any:
    """Create the object of a state entry from its stored fields: absent fields have their defaults."""
    names = [field.name for field in dataclasses.fields(entry.form)]
    return entry.form(**{name: stored[name] for name in names if stored is not None and name in stored})


def store_state(state: Any) -> dict[str, Any]:
    """Return the fields of a state object, by name."""
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}
