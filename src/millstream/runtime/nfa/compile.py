"""The compiler of patterns: from a pattern to an automaton of states and edges.

An edge takes an event, ignores it, or proceeds without one. States are created from the last step to the first, so that
each state knows the state that follows it (the sink). States and edges have the same order as Flink's, because the
order of matches depends on it.

Promises: the automaton finds the same matches in the same order as Flink's. An invalid pattern is refused.
Does not know: events, partial matches and time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from millstream.runtime.nfa.conditions import ALWAYS, Both, Check, Condition, both, compile_check, negate
from millstream.runtime.nfa.pattern import Contiguity, MalformedPatternException, PatternPlan, Skip, Step

END = "$endState$"


class StateType(Enum):
    """What it means to reach a state. A PENDING state becomes a match when the time of the window is over."""

    NORMAL = "normal"
    FINAL = "final"
    STOP = "stop"
    PENDING = "pending"


class Action(IntEnum):
    """What an edge does with the current event."""

    TAKE = 0
    IGNORE = 1
    PROCEED = 2


@dataclass(eq=False)
class _Edge:
    action: Action
    target: _State
    condition: Condition


@dataclass(eq=False)
class _State:
    name: str
    state_type: StateType
    edges: list[_Edge] = field(default_factory=list)
    gap: int | None = None

    def add(self, action: Action, target: _State, condition: Condition) -> None:
        self.edges.append(_Edge(action, target, condition))


@dataclass(frozen=True, eq=False)
class State:
    """A state of the automaton.

    An edge is (action, target, check or None, index of the name under which the event is taken). `conditions` are the
    conditions from which the checks of the edges were compiled. `gap` is the maximum time since the event before.
    """

    state_type: StateType
    edges: tuple[tuple[Action, int, Check | None, int], ...]
    gap: int | None
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class Automaton:
    """A compiled pattern. `window` is in milliseconds, 0 for none; `names` are the names of the steps."""

    states: tuple[State, ...]
    start: int
    names: list[str]
    window: int
    skip: Skip
    can_be_empty: bool

    def fingerprint(self) -> str:
        """Return a hash that is equal for automata with interchangeable partial matches; it ignores conditions."""
        states = [(s.state_type.value, s.gap, [(int(a), to, name) for a, to, _, name in s.edges]) for s in self.states]
        text = repr((states, self.start, self.names, self.window))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def compile_pattern(plan: PatternPlan) -> Automaton:
    """Compile a pattern to an automaton."""
    names = [step.name for step in _leaf_steps(plan.steps)]
    for name in names:
        if name == END or names.count(name) > 1:
            msg = f"the step name '{END}' is reserved" if name == END else f"the step name '{name}' is used twice"
            raise MalformedPatternException(msg, hint="give each step a name of its own")
    if plan.skip.name is not None and plan.skip.name not in [step.name for step in plan.steps]:
        msg = f"the skip strategy skips to '{plan.skip.name}', which is not a step of the pattern"
        raise MalformedPatternException(msg, hint=f"the steps are {', '.join(names)}")
    return _Compiler(plan).compile(names)


def _leaf_steps(steps: tuple[Step, ...]) -> list[Step]:
    return [leaf for step in steps for leaf in (_leaf_steps(step.group) if step.group else [step])]


@dataclass(frozen=True, eq=False)
class _StepPosition:
    """A step with its siblings and its surrounding group.

    `is_first_round` says whether the steps belong to the first occurrence of the group.
    """

    steps: tuple[Step, ...]
    index: int
    following: Step | None
    group: Step | None = None
    is_first_round: bool = True

    @property
    def step(self) -> Step:
        return self.steps[self.index]

    @property
    def is_first_of_group(self) -> bool:
        return self.group is not None and self.index == 0

    @property
    def previous(self) -> _StepPosition:
        return replace(self, index=self.index - 1, following=self.step)


class _Compiler:
    def __init__(self, plan: PatternPlan) -> None:
        self._plan = plan
        self._states: list[_State] = []
        self._names: set[str] = set()
        self._stops: dict[str, _State] = {}
        self._copies_without_greedy: dict[str, _State] = {}
        self._window: int | None = plan.steps[-1].within

    def compile(self, names: list[str]) -> Automaton:
        steps = self._plan.steps
        last = steps[-1]
        position = _StepPosition(steps, len(steps) - 1, None)
        end = self._add_state(END, StateType.FINAL)
        position, sink = self._convert_all_but_first(position, end)
        start = self._convert(position, sink)
        window = self._window or 0
        gaps = {state.name: state.gap for state in self._states if state.gap is not None}
        if self._window is not None and any(gap > window for gap in gaps.values()):
            msg = f"the maximum time between two events is longer than that of the whole pattern, {window} ms"
            raise MalformedPatternException(msg, hint="reduce the time between events, or increase that of the pattern")
        if last.contiguity is Contiguity.NOT_FOLLOWED_BY and not gaps.get(last.name) and not window:
            msg = f"the pattern ends with not_followed_by('{last.name}'), which needs a time limit"
            raise MalformedPatternException(msg, hint="call within(...) on this step")
        return self._build_automaton(start, names, window)

    def _build_automaton(self, start: _State, names: list[str], window: int) -> Automaton:
        numbers = {id(state): number for number, state in enumerate(self._states)}
        name_indexes = {name: index for index, name in enumerate(names)}
        states = []
        for state in self._states:
            name_index = name_indexes.get(state.name.split(":")[0], -1)
            edges = tuple(
                (edge.action, numbers[id(edge.target)], compile_check(edge.condition), name_index)
                for edge in state.edges
            )
            conditions = tuple(edge.condition for edge in state.edges)
            states.append(State(state.state_type, edges, state.gap, conditions))
        for state in self._states:
            if state in _states_without_event(state):
                msg = "all steps of a looping group are optional, so it would loop without consuming events"
                raise MalformedPatternException(msg, hint="make one step of the group mandatory")
        initial_types = {state.state_type for state in _states_without_event(start)}
        if StateType.STOP in initial_types:
            msg = "all steps before a negated step are optional"
            raise MalformedPatternException(msg, hint="make one step before it mandatory")
        can_be_empty = StateType.FINAL in initial_types
        return Automaton(tuple(states), numbers[id(start)], names, window, self._plan.skip, can_be_empty)

    # --------------------------------------------------------------------------------------------- creating states

    def _add_state(self, name: str, state_type: StateType) -> _State:
        unique_name, number = name, 0
        while unique_name in self._names:
            unique_name, number = f"{name}:{number}", number + 1
        self._names.add(unique_name)
        state = _State(unique_name, state_type)
        self._states.append(state)
        return state

    def _add_step_state(self, step: Step, state_type: StateType = StateType.NORMAL) -> _State:
        """Add a state in which a step waits for an event, with its time limit."""
        state = self._add_state(step.name, state_type)
        if step.times is None:
            state.gap = step.within_previous
        elif ":" in state.name:  # the state of the last occurrence has the plain name, and no occurrence follows it
            state.gap = step.times.gap
        return state

    def _stop_state(self, condition: Condition, name: str) -> _State:
        """Return the state that discards a partial match; there is one for each negated step."""
        state = self._stops.get(name)
        if state is None:
            state = self._stops[name] = self._add_state(name, StateType.STOP)
            state.add(Action.TAKE, state, condition)
        return state

    def _convert_all_but_first(self, position: _StepPosition, sink: _State) -> tuple[_StepPosition, _State]:
        """Create the states of all steps but the first; return the first position and the state that follows it."""
        while position.index > 0:
            step = position.step
            if step.contiguity is Contiguity.NOT_FOLLOWED_BY:
                sink = self._convert_not_followed_by(position, sink)
            elif step.contiguity is Contiguity.NOT_NEXT:
                sink = self._convert_not_next(position, sink)
            else:
                sink = self._convert(position, sink)
            position = position.previous
            within = position.step.within
            if within is not None and (self._window is None or within < self._window):
                self._window = within
        return position, sink

    def _convert_not_followed_by(self, position: _StepPosition, sink: _State) -> _State:
        """Create the pending state of a negated last step, which waits until its time is over.

        Before another step, a negated step has no state: it is a stop edge of that step's states.
        """
        step = position.step
        if sink.state_type is not StateType.FINAL or (step.within_previous is None and not self._window):
            return sink
        waiting = self._add_step_state(step, StateType.PENDING)
        negated_condition = self._take_condition(position, step)
        waiting.add(Action.PROCEED, self._stop_state(negated_condition, step.name), negated_condition)
        waiting.add(Action.IGNORE, waiting, negate(negated_condition))
        return waiting

    def _convert_not_next(self, position: _StepPosition, sink: _State) -> _State:
        step = position.step
        state = self._add_step_state(step)
        negated_condition = self._take_condition(position, step)
        stop = self._stop_state(negated_condition, step.name)
        # At the end of the pattern the event itself decides, so it is ignored; else the next step evaluates it too.
        state.add(
            Action.IGNORE if sink.state_type is StateType.FINAL else Action.PROCEED, sink, negate(negated_condition)
        )
        state.add(Action.PROCEED, stop, negated_condition)
        return state

    def _convert(self, position: _StepPosition, sink: _State) -> _State:
        step = position.step
        if step.looping:
            loop = self._convert_loop(position, self._copy_without_stop_edges(position, sink))
            state = self._convert_repeated(position, loop, sink)
        elif step.times is not None:
            state = self._convert_repeated(position, sink, sink)
        else:
            take, ignore = self._take_condition(position, step), self._ignore_condition(position, step)
            state = self._convert_single(
                position, sink, sink, take, ignore, optional=step.optional, is_first_round=True
            )
        self._add_stop_edges(position, state)
        return state

    def _convert_repeated(self, position: _StepPosition, sink: _State, proceed: _State) -> _State:
        """Create one state for each occurrence; those after the minimum can proceed at once."""
        step = position.step
        times = step.times
        assert times is not None
        most = times.least if times.most is None else times.most
        ignore = _unless_stopped(self._inner_ignore_condition(position, step), step.until)
        take = _unless_stopped(self._take_condition(position, step), step.until)
        assert take is not None
        if step.greedy and times.least != most:
            if step.until is not None:
                self._copies_without_greedy[sink.name] = self._copy_state(sink)
            _reserve_for_greedy_step(sink, take)
        state = sink
        for _ in range(times.least, most):
            state = self._convert_single(position, state, proceed, take, ignore, optional=True, is_first_round=False)
            self._add_stop_edge_of_following(position, state)
        for _ in range(times.least - 1):
            state = self._convert_single(position, state, proceed, take, ignore, optional=False, is_first_round=False)
            self._add_stop_edge_of_following(position, state)
        ignore_before_first = self._ignore_condition(position, step)
        return self._convert_single(
            position, state, proceed, take, ignore_before_first, optional=step.optional, is_first_round=True
        )

    def _convert_single(
        self,
        position: _StepPosition,
        sink: _State,
        proceed: _State,
        take: Condition,
        ignore: Condition | None,
        *,
        optional: bool,
        is_first_round: bool,
    ) -> _State:
        """Create the state of one occurrence.

        If an optional occurrence has ignored an event, it continues in a copy of its state that cannot proceed any
        more.
        """
        step = position.step
        if step.group:
            return self._convert_group(position, sink, proceed, optional=optional, is_first_round=is_first_round)
        state = self._add_step_state(step)
        after = self._copy_without_stop_edges(position, sink)
        state.add(Action.TAKE, after, take)
        if optional:
            self._add_proceed_edges(position, state, proceed, self._copies_without_greedy.get(proceed.name))
        if ignore is not None:
            group = position.group
            is_group_optional = group is not None and group.optional
            waiting_copy = state
            if optional or (position.is_first_of_group and position.is_first_round and is_group_optional):
                waiting_copy = self._add_state(step.name, StateType.NORMAL)
                waiting_copy.add(Action.TAKE, after, take)
                waiting_copy.add(Action.IGNORE, waiting_copy, ignore)
                self._add_stop_edges(position, waiting_copy)
            state.add(Action.IGNORE, waiting_copy, ignore)
        return state

    def _add_proceed_edges(self, position: _StepPosition, state: _State, target: _State, copy: _State | None) -> None:
        """Add the edges that proceed without an event.

        If `until` ends a greedy loop, the edge leads to a copy of the target that does not leave events to the loop.
        """
        step, condition = position.step, self._proceed_condition(position)
        if step.greedy and step.until is not None:
            if copy is not None:
                state.add(Action.PROCEED, copy, both(condition, step.until))
            condition = both(condition, negate(step.until))
        state.add(Action.PROCEED, target, condition)

    def _convert_group(
        self, position: _StepPosition, sink: _State, proceed: _State, *, optional: bool, is_first_round: bool
    ) -> _State:
        last = self._last_step_of_group(position, is_first_round=is_first_round)
        first, state = self._convert_all_but_first(last, sink)
        state = self._convert(first, state)
        if optional:
            state.add(Action.PROCEED, proceed, self._proceed_condition(position))
        return state

    def _convert_loop(self, position: _StepPosition, sink: _State) -> _State:
        """Create a state that takes any number of events and can proceed to the sink at any time."""
        step = position.step
        if step.group:
            return self._convert_looping_group(position, sink)
        ignore = _unless_stopped(self._inner_ignore_condition(position, step), step.until)
        take = _unless_stopped(self._take_condition(position, step), step.until)
        assert take is not None
        state = self._add_step_state(step)
        if step.greedy:
            copy = None
            if step.until is not None:
                copy = self._copies_without_greedy[sink.name] = self._copy_state(sink)
            self._add_proceed_edges(position, state, sink, copy)
            _reserve_for_greedy_step(sink, self._take_condition(position, step))
        else:
            state.add(Action.PROCEED, sink, self._proceed_condition(position))
        state.add(Action.TAKE, state, take)
        self._add_stop_edge_of_following(position, state)
        if ignore is not None:
            waiting_copy = self._add_state(step.name, StateType.NORMAL)
            waiting_copy.add(Action.TAKE, state, take)
            waiting_copy.add(Action.IGNORE, waiting_copy, ignore)
            state.add(Action.IGNORE, waiting_copy, ignore)
            self._add_stop_edge_of_following(position, waiting_copy)
        return state

    def _convert_looping_group(self, position: _StepPosition, sink: _State) -> _State:
        repeat = self._add_step_state(position.step)
        first, state = self._convert_all_but_first(self._last_step_of_group(position, is_first_round=False), repeat)
        state = self._convert(first, state)
        condition = self._proceed_condition(position)
        state.add(Action.PROCEED, sink, condition)
        repeat.add(Action.PROCEED, state, condition)
        return state

    @staticmethod
    def _last_step_of_group(position: _StepPosition, *, is_first_round: bool) -> _StepPosition:
        steps = position.step.group
        return _StepPosition(steps, len(steps) - 1, position.following, position.step, is_first_round)

    # ----------------------------------------------------------------------------------------------- negated steps

    def _negated_steps_before(self, position: _StepPosition) -> list[tuple[Condition, str]]:
        """Return conditions and names of the not_followed_by steps directly before a step, across optional ones."""
        negated_steps = []
        steps, index = position.steps, position.index
        while index > 0:
            previous = steps[index - 1]
            is_negated = previous.contiguity is Contiguity.NOT_FOLLOWED_BY
            if not (previous.optional or is_negated):
                break
            index -= 1
            if is_negated:
                negated_steps.append((self._take_condition(position, previous), previous.name))
        return negated_steps

    def _add_stop_edges(self, position: _StepPosition, state: _State) -> None:
        for condition, name in self._negated_steps_before(position):
            state.add(Action.PROCEED, self._stop_state(condition, name), condition)

    def _add_stop_edge_of_following(self, position: _StepPosition, state: _State) -> None:
        following = position.following
        if following is not None and following.contiguity is Contiguity.NOT_FOLLOWED_BY:
            condition = self._take_condition(position, following)
            state.add(Action.PROCEED, self._stop_state(condition, following.name), condition)

    def _copy_without_stop_edges(self, position: _StepPosition, sink: _State) -> _State:
        """Return the sink for an optional step that has taken an event: negated steps before it no longer apply."""
        negated_steps = self._negated_steps_before(position)
        if not negated_steps or not position.step.optional:
            return sink
        names = {name for _, name in negated_steps}
        copy = self._add_state(sink.name, sink.state_type)
        for edge in sink.edges:
            if edge.action is Action.PROCEED:
                if edge.target.state_type is not StateType.STOP:
                    copy.add(edge.action, self._copy_without_stop_edges(position, edge.target), edge.condition)
                elif edge.target.name not in names:
                    copy.add(edge.action, edge.target, edge.condition)
            else:
                copy.add(edge.action, copy if edge.target is sink else edge.target, edge.condition)
        return copy

    def _copy_state(self, state: _State) -> _State:
        copy = self._add_state(state.name.split(":")[0], state.state_type)
        for edge in state.edges:
            copy.add(edge.action, copy if edge.target is state else edge.target, edge.condition)
        return copy

    # -------------------------------------------------------------------------------------------------- conditions

    @staticmethod
    def _take_condition(position: _StepPosition, step: Step) -> Condition:
        condition = step.condition
        if position.group is not None and position.group.until is not None:
            condition = Both(negate(position.group.until), condition)
        return condition

    @staticmethod
    def _proceed_condition(position: _StepPosition) -> Condition:
        if position.group is not None and position.group.until is not None:
            return negate(position.group.until)
        return ALWAYS

    def _ignore_condition(self, position: _StepPosition, step: Step) -> Condition | None:
        contiguity = step.contiguity
        if position.is_first_of_group:
            assert position.group is not None
            contiguity = position.group.contiguity if position.is_first_round else position.group.inner
        return self._ignore_condition_for(position, step, contiguity)

    def _inner_ignore_condition(self, position: _StepPosition, step: Step) -> Condition | None:
        contiguity = step.inner
        if position.is_first_of_group:
            assert position.group is not None
            contiguity = position.group.inner
        return self._ignore_condition_for(position, step, contiguity)

    @staticmethod
    def _ignore_condition_for(position: _StepPosition, step: Step, contiguity: Contiguity) -> Condition | None:
        """Return which events can be condition: none, those that the step does not accept, or all."""
        condition: Condition | None = None
        if contiguity is Contiguity.RELAXED:
            condition = negate(step.condition)
        elif contiguity is Contiguity.ANY:
            condition = ALWAYS
        return _unless_stopped(condition, None if position.group is None else position.group.until)


def _unless_stopped(condition: Condition | None, until: Condition | None) -> Condition | None:
    """Return the condition that holds only while `until` does not."""
    if condition is None or until is None:
        return condition
    return Both(negate(until), condition)


def _reserve_for_greedy_step(sink: _State, take: Condition) -> None:
    """Exclude from the edges of the sink the events that the greedy step before it would take."""
    for edge in sink.edges:
        edge.condition = both(edge.condition, negate(take))


def _states_without_event(start: _State) -> set[_State]:
    """Return the states that are reached from a state without an event."""
    reached: set[_State] = set()
    pending = [start]
    while pending:
        for edge in pending.pop().edges:
            if edge.action is Action.PROCEED and edge.target not in reached:
                reached.add(edge.target)
                pending.append(edge.target)
    return reached
