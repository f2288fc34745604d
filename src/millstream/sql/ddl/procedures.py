"""CALL: the arguments of a procedure, and its result.

Promises: arguments are constant expressions, cast to the declared types; the result has Flink's columns.
Does not know: the table environment; the caller supplies the context that a procedure gets."""

from __future__ import annotations

from typing import Any

from millstream.runtime.rowwise import failure
from millstream.sql.catalog.procedures import ProcedureDefinition
from millstream.sql.columns import accept_none, create_external_converter, create_internal_converter
from millstream.sql.ddl.results import StatementResult
from millstream.sql.errors import CatalogError, SqlValidationError, nearest
from millstream.sql.evaluation.evaluate import evaluate_constant
from millstream.sql.evaluation.repeated import is_pure
from millstream.sql.functions.user_functions import WrongResult
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session, coerce
from millstream.sql.logical.bind.inserts import is_assignable
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


def call_procedure(session: Session, node: s.CallProcedure, context: Any) -> StatementResult:
    """CALL name(arguments); `context` is the first argument of the procedure."""
    procedure = _find(session, node)
    arguments = _bind_arguments(session, node, procedure)
    name = ".".join(node.name)
    try:
        rows = list(procedure.function(context, **arguments) or ())  # a generator runs here
    except (Exception, SystemExit) as problem:
        raise failure(name, problem, record=tuple(arguments.values())) from problem
    return _create_result(name, procedure.result_schema(), rows)


def _find(session: Session, node: s.CallProcedure) -> ProcedureDefinition:
    catalog, database, name = session.catalogs.full_name(node.name, node.at)
    procedures = session.catalogs.database(catalog, database, node.at).procedures
    if name not in procedures:
        message = f"there is no procedure '{'.'.join(node.name)}'"
        raise CatalogError(message, at=node.at, hint=nearest(name, procedures) or "see SHOW PROCEDURES")
    return procedures[name]


def _bind_arguments(session: Session, node: s.CallProcedure, procedure: ProcedureDefinition) -> dict[str, Any]:
    """Return the values of the arguments by the names of the parameters."""
    parameters = procedure.parameters()
    types = dict(zip((parameter.name for parameter in parameters), procedure.input_types, strict=True))
    arguments: dict[str, Any] = {}
    for index, argument in enumerate(node.arguments):
        is_named = isinstance(argument, s.NamedArgument)
        if not is_named and index >= len(parameters):
            message = f"procedure '{node.name[-1]}' takes {len(parameters)} arguments at most"
            raise SqlValidationError(message, at=argument.at)
        name = argument.name if isinstance(argument, s.NamedArgument) else parameters[index].name
        if name not in types:
            message = f"procedure '{node.name[-1]}' has no parameter '{name}'"
            raise SqlValidationError(message, at=argument.at, hint=nearest(name, types))
        if name in arguments:
            message = f"the argument '{name}' occurs twice"
            raise SqlValidationError(message, at=argument.at)
        value = argument.value if isinstance(argument, s.NamedArgument) else argument
        arguments[name] = _evaluate(session, value, types[name], name)
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in arguments:
            message = (
                f"procedure '{node.name[-1]}' needs the argument '{parameter.name}' of type {types[parameter.name]}"
            )
            raise SqlValidationError(message, at=node.at)
    return arguments


def _evaluate(session: Session, node: s.Expr, data_type: t.DataType, name: str) -> Any:
    bound = ExpressionBinder(session, Scope(), clause="as an argument of a procedure").bind(node)
    if not is_assignable(bound.type, data_type):
        message = f"the argument '{name}' must be {data_type}, not {bound.type}"
        raise SqlValidationError(message, at=node.at)
    if not is_pure(bound):
        message = f"the argument '{name}' must be a constant"
        raise SqlValidationError(message, at=node.at)
    value = evaluate_constant(coerce(bound, data_type), zone=session.zone)
    convert = create_external_converter(data_type)
    return value if convert is None or value is None else convert(value)


def _create_result(name: str, schema: t.RowType, rows: list[Any]) -> StatementResult:
    converters = [accept_none(create_internal_converter(data_type)) for data_type in schema.types]
    values: list[tuple[Any, ...]] = []
    for row in rows:
        cells = tuple(row) if isinstance(row, tuple | list) or hasattr(row, "_values") else (row,)
        if len(cells) != len(converters):
            raise WrongResult(name, f"it returned {row!r}, which has {len(cells)} columns, not {len(converters)}")
        try:
            for convert, cell in zip(converters, cells, strict=True):
                convert(cell)
        except (TypeError, ValueError):
            raise WrongResult(name, f"it returned {row!r}, which does not match its declared result type") from None
        values.append(cells)
    return StatementResult(schema, tuple(values))
