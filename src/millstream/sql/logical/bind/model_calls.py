"""Binding of ML_PREDICT and ML_EVALUATE.

Promises: Flink's parameters. The columns of DESCRIPTOR must be assignable to the input columns of the model. The result
of ML_PREDICT has the columns of the table, then the output columns of the model, with numbers after names that occur
twice. The result of ML_EVALUATE is a map of metrics.
Does not know: how a model is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.sql.catalog.models import ModelDefinition
from millstream.sql.errors import SqlValidationError, nearest
from millstream.sql.expressions.nodes import Expression, Ref
from millstream.sql.functions.function_context import AsyncOptions
from millstream.sql.functions.model_functions import ModelFunction
from millstream.sql.functions.user_functions import AGGREGATE, TABLE, UserFunction
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.expressions import Session, coerce
from millstream.sql.logical.bind.inserts import is_assignable
from millstream.sql.logical.bind.table_arguments import BindSource, bind_table_argument, read_arguments
from millstream.sql.models.evaluation import EVALUATIONS
from millstream.sql.models.provider import ModelContext
from millstream.sql.models.registry import find_provider
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.durations import parse_duration_millis
from millstream.sql_options import ML_PREDICT_CAPACITY, ML_PREDICT_TIMEOUT

if TYPE_CHECKING:
    from millstream.sql.logical.bind.queries import QueryBinder

MODEL_FUNCTIONS = ("ML_PREDICT", "ML_EVALUATE")
_PARAMETERS = {
    "ML_PREDICT": ("INPUT", "MODEL", "ARGS", "CONFIG"),
    "ML_EVALUATE": ("INPUT", "MODEL", "LABEL", "ARGS", "TASK", "CONFIG"),
}
_CONFIG_KEYS = ("async", "output-mode", "max-concurrent-operations", "timeout")
_RESULT = t.MapType(t.STRING.not_null(), t.DoubleType())


def bind_model_table(queries: QueryBinder, call: s.Call, bind: BindSource) -> l.Plan:
    """Bind ML_PREDICT(TABLE t, MODEL m, DESCRIPTOR(c, ...) [, MAP[...]]) or ML_EVALUATE."""
    arguments = read_arguments(call, _PARAMETERS[call.name])
    plan, _ = bind_table_argument(queries, call, arguments.get("INPUT"), bind, "TABLE t, MODEL m, DESCRIPTOR(column)")
    argument = arguments.get("MODEL")
    if not isinstance(argument, s.ModelArgument):
        message = f"the second argument of {call.name} must be a model"
        raise SqlValidationError(message, at=call.at if argument is None else argument.at, hint="write MODEL name")
    features = _read_columns(plan, call, arguments.get("ARGS"), "ARGS")
    predicted = predict(
        queries.session, plan, argument.path, features, _read_config(call, arguments.get("CONFIG")), call.at
    )
    if call.name == "ML_PREDICT":
        return predicted
    return _evaluate(queries, call, plan, predicted, arguments)


def predict(
    session: Session,
    plan: l.Plan,
    path: tuple[str, ...],
    features: list[Ref],
    config: dict[str, str],
    at: int | None = None,
    model: ModelDefinition | None = None,
) -> l.Plan:
    """Return a plan with the predictions of a model for columns of another plan; by default the model at `path`."""
    function = _create_function(session, path, model or session.catalogs.models.get(path, at), config, at)
    arguments = _assign(function, plan, features, at)
    assert isinstance(function.result_type, t.RowType)
    schema = l.join_schemas(plan.schema, function.result_type, "inner")
    return l.Correlate(schema, plan, function, tuple(arguments), outer=False)


def _create_function(
    session: Session, path: tuple[str, ...], model: ModelDefinition, config: dict[str, str], at: int | None
) -> ModelFunction:
    options = _async_options(session, config, at)
    context = ModelContext(session.catalogs.full_name(path), model, options.capacity, options.timeout / 1000)
    predictor = find_provider(context).create(context)
    async_mode = config.get("async", "").lower()
    if async_mode not in ("", "true", "false"):
        message = f"'async' in CONFIG must be true or false, not '{async_mode}'"
        raise SqlValidationError(message, at=at)
    if async_mode and (async_mode == "true") != predictor.asynchronous:
        mode = "asynchronous" if async_mode == "true" else "synchronous"
        message = f"model '{'.'.join(path)}' cannot be called in {mode} mode, which its provider does not have"
        raise SqlValidationError(message, at=at, hint="leave out 'async' in CONFIG")
    return ModelFunction(
        path[-1],
        TABLE,
        predictor.function,
        model.output_schema,
        tuple(column.type for column in model.input),
        deterministic=False,
        asynchronous=predictor.asynchronous,
        async_options=options,
        takes_batches=predictor.takes_batches,
    )


def _async_options(session: Session, config: dict[str, str], at: int | None) -> AsyncOptions:
    for key in config:
        if key not in _CONFIG_KEYS:
            message = f"CONFIG has no option '{key}'"
            raise SqlValidationError(message, at=at, hint=nearest(key, _CONFIG_KEYS))
    mode = config.get("output-mode", "ORDERED").upper()
    if mode not in ("ORDERED", "ALLOW_UNORDERED"):
        message = f"'output-mode' in CONFIG must be ORDERED or ALLOW_UNORDERED, not '{mode}'"
        raise SqlValidationError(message, at=at)
    capacity = config.get("max-concurrent-operations") or session.options(ML_PREDICT_CAPACITY.key)
    if capacity is not None and (not capacity.isdigit() or int(capacity) < 1):
        message = f"'max-concurrent-operations' must be an integer of at least 1, not '{capacity}'"
        raise SqlValidationError(message, at=at)
    timeout = config.get("timeout") or session.options(ML_PREDICT_TIMEOUT.key)
    return AsyncOptions(
        ML_PREDICT_CAPACITY.default if capacity is None else int(capacity),
        ML_PREDICT_TIMEOUT.default.to_milliseconds() if timeout is None else parse_duration_millis(timeout, at),
        attempts=0,
    )


def _assign(function: ModelFunction, plan: l.Plan, features: list[Ref], at: int | None) -> list[Expression]:
    """Cast the features to the types of the model's input columns."""
    assert function.input_types is not None
    if len(features) != len(function.input_types):
        message = f"model '{function.name}' has {len(function.input_types)} input columns, not {len(features)}"
        raise SqlValidationError(message, at=at)
    for feature, data_type in zip(features, function.input_types, strict=True):
        if not is_assignable(feature.type, data_type):
            name = plan.schema.names[feature.index]
            message = (
                f"column '{name}' of type {feature.type} cannot be assigned to an input column of type {data_type}"
            )
            raise SqlValidationError(message, at=at, hint="cast it in a subquery")
    return [
        coerce(feature, data_type.nullable()) for feature, data_type in zip(features, function.input_types, strict=True)
    ]


def _evaluate(
    queries: QueryBinder, call: s.Call, plan: l.Plan, predicted: l.Plan, arguments: dict[str, s.Expr]
) -> l.Plan:
    """Aggregate the labels and the predictions to a map of metrics."""
    labels = _read_columns(plan, call, arguments.get("LABEL"), "LABEL")
    task = arguments.get("TASK")
    if not isinstance(task, s.Literal) or task.value not in EVALUATIONS:
        message = f"the argument TASK of {call.name} must be one of {', '.join(EVALUATIONS)}"
        raise SqlValidationError(message, at=call.at if task is None else task.at)
    width = len(plan.schema)
    if len(labels) != 1 or len(predicted.schema) != width + 1:
        message = f"{call.name} needs one label column, and a model with one output column"
        raise SqlValidationError(message, at=call.at)
    label, prediction = predicted.refs()[labels[0].index], predicted.refs()[width]
    if not is_assignable(label.type, prediction.type):
        message = f"the label of type {label.type} cannot be assigned to the output column of type {prediction.type}"
        raise SqlValidationError(message, at=call.at)
    name = str(task.value)
    function = UserFunction(
        f"ML_EVALUATE_{name}", AGGREGATE, EVALUATIONS[name], _RESULT, (prediction.type, prediction.type),
        accumulator_type=_RESULT.not_null(),
    )  # fmt: skip
    pairs = l.project(predicted, [coerce(label, prediction.type), prediction], ["label", "prediction"])
    args = (s.Name(call.at, ("label",)), s.Name(call.at, ("prediction",)))
    aggregate = s.Call(call.at, function.name, args, user=function)
    body = s.Select(call.at, ((aggregate, "result"),), s.PlanSource(call.at, pairs))
    return type(queries)(queries.session).query(s.Query(call.at, body))


def _read_columns(plan: l.Plan, call: s.Call, argument: s.Expr | None, parameter: str) -> list[Ref]:
    if not isinstance(argument, s.Descriptor):
        message = f"the argument {parameter} of {call.name} must name columns"
        raise SqlValidationError(message, at=call.at, hint=f"write {parameter} => DESCRIPTOR(column, ...)")
    return find_columns(plan, argument.columns, argument.at)


def find_columns(plan: l.Plan, names: tuple[str, ...], at: int | None = None) -> list[Ref]:
    """Return the columns of a plan by their names."""
    refs = dict(zip(plan.schema.names, plan.refs(), strict=True))
    for name in names:
        if name not in refs:
            message = f"the table has no column '{name}'"
            raise SqlValidationError(message, at=at, hint=nearest(name, refs))
    return [refs[name] for name in names]


def _read_config(call: s.Call, argument: s.Expr | None) -> dict[str, str]:
    if argument is None:
        return {}
    is_map = isinstance(argument, s.Call) and argument.name == "MAP VALUE"
    values = argument.args if is_map and isinstance(argument, s.Call) else ()
    texts = [value.value for value in values if isinstance(value, s.Literal) and isinstance(value.value, str)]
    if not is_map or len(texts) != len(values) or len(texts) % 2:
        message = f"the argument CONFIG of {call.name} must be a map of string literals"
        raise SqlValidationError(message, at=argument.at, hint="write MAP['async', 'true', 'timeout', '100s']")
    return dict(zip(texts[::2], texts[1::2], strict=True))
