"""Delta iterations: a solution set that is updated in place by a workset, until the workset is empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.datastream.call_types import result_type
from millstream.datastream.data_stream import DataStream
from millstream.errors import InvalidArgument
from millstream.functions import DeltaFunction, as_function
from millstream.graph.transformations import Input
from millstream.iteration.construction import Construction
from millstream.iteration.termination import Termination
from millstream.runtime.operators.delta_iteration import SOLUTION, DeltaSpec

Selector = Any


def iterate_delta(
    solution_set: DataStream[Any],
    workset: DataStream[Any],
    key: Selector | tuple[Selector, Selector],
    function: DeltaFunction[Any, Any, Any],
    body: Callable[[DataStream[Any]], DataStream[Any]] | None = None,
    termination: Termination | int | None = None,
    *,
    name: str | None = None,
) -> DataStream[Any]:
    """Update a solution set by a workset, round by round, until the workset is empty.

    The solution set is keyed state. A round processes only the keys that are in the workset, so its cost follows the
    size of the workset and not that of the solution set.

    Args:
        solution_set: The initial solution set; of several elements with one key the last is kept.
        workset: The initial workset.
        key: The key of both, or a pair: the key of the solution set and the key of the workset. A function of the
            record, or the name or index of a field.
        function: Updates one element; see `DeltaFunction`.
        body: Computes the next workset from the stream of what `expand` returns, such as a join with edges. Without it,
            that stream is the next workset.
        termination: A limit of rounds, or a `Termination`; by default the iteration ends with an empty workset.
        name: The name of the iteration, unique in the program.

    Returns:
        The stream of the solution set at the end.

    Raises:
        InvalidArgument: The keys of solution set and workset have different types.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> from millstream.iteration import DeltaFunction, iterate_delta
        >>> class CountDown(DeltaFunction):
        ...     def update(self, key, solution, workset):
        ...         return (key, solution[1] - 1) if solution[1] > 0 else None
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> numbers = env.from_collection([("a", 3), ("b", 5)])
        >>> zeros = iterate_delta(numbers, numbers, lambda pair: pair[0], CountDown())

    """
    solution_key, workset_key = key if isinstance(key, tuple) else (key, key)
    construction = Construction(workset, name, bounded=True)
    elements = solution_set.key_by(solution_key)
    records = construction.variable(workset).key_by(workset_key)
    selections = elements._key_selection(), records._key_selection()
    assert selections[0] is not None
    assert selections[1] is not None
    types = selections[0].key_type, selections[1].key_type
    if types[0] != types[1]:
        msg = (
            f"the solution set of iteration '{construction.loop.name}' has keys of type {types[0]}, and its workset "
            f"has keys of type {types[1]}"
        )
        raise InvalidArgument(msg, hint="let both selectors return the same type")
    update: Any = as_function(function, DeltaFunction)
    env = construction.env
    expanded_type = workset.get_type() if body is None else result_type(None, update.expand, element=True)
    spec = DeltaSpec(update, (selections[0], selections[1]), solution_set.get_type())
    second = tuple(Input(edge.upstream, 1, edge.tag, edge.partitioner) for edge in records._inputs)
    step = env._program.add("Delta Iteration", spec, expanded_type, elements._inputs + second, **elements._keyed())
    expanded = env._stream(step)
    construction.feed_back((expanded if body is None else body(expanded),))
    env._program.declare_side(step, SOLUTION, solution_set.get_type())
    result: DataStream[Any] = DataStream(env, (Input(step, tag=SOLUTION),))
    termination = Termination(when_empty=True) if termination is None else Termination.of(termination)
    construction.configure(termination.configure(construction.loop, has_criterion=True))
    return result
