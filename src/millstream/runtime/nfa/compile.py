"""From a pattern to an automaton: states, and edges that take an event, ignore it, or proceed without one.

The states are made from the last step to the first, each knowing the state its events lead to (the sink). The order of
edges and states is Flink's, because the order of matches follows from it.

Promises: the same matches in the same order as Flink's automaton; a pattern that makes no sense is refused here.
Does not know: events, partial matches, time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

from millstream.runtime.nfa.conditions import ALWAYS, Both, Check, Condition, both, compile_check, negate
from millstream.runtime.nfa.pattern import Contiguity, MalformedPatternException, PatternPlan, Skip, Step

END = "$endState$"


class Kind(Enum):
    """What reaching a state means. PENDING waits for the end of the window to be a match."""

    NORMAL = "normal"
    FINAL = "final"
    STOP = "stop"
    PENDING = "pending"


class Action(IntEnum):
    """What an edge does with the event at hand."""

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
    kind: Kind
    edges: list[_Edge] = field(default_factory=list)
    gap: int | None = None

    def add(self, action: Action, target: _State, condition: Condition) -> None:
        self.edges.append(_Edge(action, target, condition))


@dataclass(frozen=True, eq=False)
class State:
    """A state of the automaton. An edge is (action, target, check or None, name under which the event is taken).

    `conditions` are what the edges' checks are made from."""

    kind: Kind
    edges: tuple[tuple[Action, int, Check | None, int], ...]
    gap: int | None
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, eq=False)
class Automaton:
    """A compiled pattern. `window` is in milliseconds, 0 for none; `names` are the steps' names."""

    states: tuple[State, ...]
    start: int
    names: list[str]
    window: int
    skip: Skip
    can_be_empty: bool

    def fingerprint(self) -> str:
        """Equal for automata whose partial matches mean the same; conditions are not looked at."""
        states = [(s.kind.value, s.gap, [(int(a), to, name) for a, to, _, name in s.edges]) for s in self.states]
        told = repr((states, self.start, self.names, self.window))
        return hashlib.sha256(told.encode()).hexdigest()[:16]


def automaton(plan: PatternPlan) -> Automaton:
    """The automaton of a pattern."""
    names = [step.name for step in _leaves(plan.steps)]
    for name in names:
        if name == END or names.count(name) > 1:
            msg = f"the pattern name '{name}' is used twice" if name != END else f"'{END}' is no name for a pattern"
            raise MalformedPatternException(msg, hint="give each step a name of its own")
    if plan.skip.name is not None and plan.skip.name not in [step.name for step in plan.steps]:
        msg = f"the skip strategy goes to '{plan.skip.name}', which is no step of the pattern"
        raise MalformedPatternException(msg, hint=f"steps are {', '.join(names)}")
    return _Compiler(plan).compile(names)


def _leaves(steps: tuple[Step, ...]) -> list[Step]:
    return [leaf for step in steps for leaf in (_leaves(step.group) if step.group else [step])]


@dataclass(frozen=True, eq=False)
class _Place:
    """A step among its siblings; `group` is the group around it, `first` says that this is the group's first round."""

    steps: tuple[Step, ...]
    index: int
    following: Step | None
    group: Step | None = None
    first: bool = True

    @property
    def step(self) -> Step:
        return self.steps[self.index]

    @property
    def is_head_of_group(self) -> bool:
        return self.group is not None and self.index == 0

    @property
    def before(self) -> _Place:
        return replace(self, index=self.index - 1, following=self.step)


class _Compiler:
    def __init__(self, plan: PatternPlan) -> None:
        self._plan = plan
        self._states: list[_State] = []
        self._names: set[str] = set()
        self._stops: dict[str, _State] = {}
        self._ungreedy: dict[str, _State] = {}
        self._window: int | None = plan.steps[-1].within

    def compile(self, names: list[str]) -> Automaton:
        steps = self._plan.steps
        last = steps[-1]
        place = _Place(steps, len(steps) - 1, None)
        end = self._state(END, Kind.FINAL)
        place, sink = self._middle(place, end)
        start = self._convert(place, sink)
        window = self._window or 0
        gaps = {state.name: state.gap for state in self._states if state.gap is not None}
        if self._window is not None and any(gap > window for gap in gaps.values()):
            msg = "the time between two events is allowed to be longer than the whole pattern"
            raise MalformedPatternException(msg, hint="give within between events less time than within of the pattern")
        if last.contiguity is Contiguity.NOT_FOLLOWED_BY and not gaps.get(last.name) and not window:
            msg = f"not_followed_by('{last.name}') ends the pattern, but nothing says how long to wait"
            raise MalformedPatternException(msg, hint="add within(...) to it")
        return self._finished(start, names, window)

    def _finished(self, start: _State, names: list[str], window: int) -> Automaton:
        numbers = {id(state): number for number, state in enumerate(self._states)}
        name_of = {name: number for number, name in enumerate(names)}
        states = []
        for state in self._states:
            taken_as = name_of.get(state.name.split(":")[0], -1)
            edges = tuple(
                (edge.action, numbers[id(edge.target)], compile_check(edge.condition), taken_as) for edge in state.edges
            )
            conditions = tuple(edge.condition for edge in state.edges)
            states.append(State(state.kind, edges, state.gap, conditions))
        for state in self._states:
            if state in _reached(state):
                msg = "a group that repeats without end can match without any event, and would repeat for ever"
                raise MalformedPatternException(msg, hint="let one step of the group not be optional")
        at_once = {state.kind for state in _reached(start)}
        if Kind.STOP in at_once:
            msg = "what must not be comes after steps that can all be left out"
            raise MalformedPatternException(msg, hint="let a step before it not be optional")
        empty = Kind.FINAL in at_once
        return Automaton(tuple(states), numbers[id(start)], names, window, self._plan.skip, empty)

    # ---------------------------------------------------------------------------------------------- making states

    def _state(self, name: str, kind: Kind) -> _State:
        unique, number = name, 0
        while unique in self._names:
            unique, number = f"{name}:{number}", number + 1
        self._names.add(unique)
        state = _State(unique, kind)
        self._states.append(state)
        return state

    def _state_of(self, step: Step, kind: Kind = Kind.NORMAL) -> _State:
        """A state in which a step waits for an event, with the time it may wait."""
        state = self._state(step.name, kind)
        if step.times is None:
            state.gap = step.within_previous
        elif ":" in state.name:  # the last of several occurrences has no other after it
            state.gap = step.times.gap
        return state

    def _stop(self, condition: Condition, name: str) -> _State:
        """The state that ends a partial match; one for each step that says what must not be."""
        found = self._stops.get(name)
        if found is None:
            found = self._stops[name] = self._state(name, Kind.STOP)
            found.add(Action.TAKE, found, condition)
        return found

    def _middle(self, place: _Place, sink: _State) -> tuple[_Place, _State]:
        """The states of all steps but the first; the place of the first and the state it leads to."""
        while place.index > 0:
            step = place.step
            if step.contiguity is Contiguity.NOT_FOLLOWED_BY:
                sink = self._not_followed(place, sink)
            elif step.contiguity is Contiguity.NOT_NEXT:
                sink = self._not_next(place, sink)
            else:
                sink = self._convert(place, sink)
            place = place.before
            within = place.step.within
            if within is not None and (self._window is None or within < self._window):
                self._window = within
        return place, sink

    def _not_followed(self, place: _Place, sink: _State) -> _State:
        """Before another step it is on the edges of that step; at the end it waits for the time to be over."""
        step = place.step
        if sink.kind is not Kind.FINAL or (step.within_previous is None and not self._window):
            return sink
        waiting = self._state_of(step, Kind.PENDING)
        unwanted = self._take(place, step)
        waiting.add(Action.PROCEED, self._stop(unwanted, step.name), unwanted)
        waiting.add(Action.IGNORE, waiting, negate(unwanted))
        return waiting

    def _not_next(self, place: _Place, sink: _State) -> _State:
        step = place.step
        state = self._state_of(step)
        unwanted = self._take(place, step)
        stop = self._stop(unwanted, step.name)
        # at the end the event is needed to know, so it is ignored into the end; else the next step sees it too
        state.add(Action.IGNORE if sink.kind is Kind.FINAL else Action.PROCEED, sink, negate(unwanted))
        state.add(Action.PROCEED, stop, unwanted)
        return state

    def _convert(self, place: _Place, sink: _State) -> _State:
        step = place.step
        if step.looping:
            loop = self._loop(place, self._without_nots(place, sink))
            state = self._repeated(place, loop, sink)
        elif step.times is not None:
            state = self._repeated(place, sink, sink)
        else:
            take, ignore = self._take(place, step), self._ignore(place, step)
            state = self._single(place, sink, sink, take, ignore, optional=step.optional, first=True)
        self._add_stops(place, state)
        return state

    def _repeated(self, place: _Place, sink: _State, proceed: _State) -> _State:
        """One state for each occurrence; those over the least may proceed at once."""
        step = place.step
        times = step.times
        assert times is not None
        most = times.least if times.most is None else times.most
        ignore = _until(self._inner_ignore(place, step), step.until)
        take = _until(self._take(place, step), step.until)
        assert take is not None
        if step.greedy and times.least != most:
            if step.until is not None:
                self._ungreedy[sink.name] = self._copy(sink)
            _prefer(sink, take)
        state = sink
        for _ in range(times.least, most):
            state = self._single(place, state, proceed, take, ignore, optional=True, first=False)
            self._add_stop_of_following(place, state)
        for _ in range(times.least - 1):
            state = self._single(place, state, proceed, take, ignore, optional=False, first=False)
            self._add_stop_of_following(place, state)
        outer = self._ignore(place, step)
        return self._single(place, state, proceed, take, outer, optional=step.optional, first=True)

    def _single(
        self,
        place: _Place,
        sink: _State,
        proceed: _State,
        take: Condition,
        ignore: Condition | None,
        *,
        optional: bool,
        first: bool,
    ) -> _State:
        """One occurrence. An optional one that has ignored an event goes on in a twin that cannot proceed any more."""
        step = place.step
        if step.group:
            return self._group(place, sink, proceed, optional=optional, first=first)
        state = self._state_of(step)
        after = self._without_nots(place, sink)
        state.add(Action.TAKE, after, take)
        if optional:
            self._add_proceed(place, state, proceed, self._ungreedy.get(proceed.name))
        if ignore is not None:
            twin = state
            if optional or (
                place.is_head_of_group and place.first and place.group is not None and place.group.optional
            ):
                twin = self._state(step.name, Kind.NORMAL)
                twin.add(Action.TAKE, after, take)
                twin.add(Action.IGNORE, twin, ignore)
                self._add_stops(place, twin)
            state.add(Action.IGNORE, twin, ignore)
        return state

    def _add_proceed(self, place: _Place, state: _State, target: _State, ungreedy: _State | None) -> None:
        """The way on without an event; where `until` ends a greedy loop, to a copy that is not held back by it."""
        step, going_on = place.step, self._always(place)
        if step.greedy and step.until is not None:
            if ungreedy is not None:
                state.add(Action.PROCEED, ungreedy, both(going_on, step.until))
            going_on = both(going_on, negate(step.until))
        state.add(Action.PROCEED, target, going_on)

    def _group(self, place: _Place, sink: _State, proceed: _State, *, optional: bool, first: bool) -> _State:
        inside = self._inside(place, first=first)
        head, state = self._middle(inside, sink)
        state = self._convert(head, state)
        if optional:
            state.add(Action.PROCEED, proceed, self._always(place))
        return state

    def _loop(self, place: _Place, sink: _State) -> _State:
        """A state that takes events again and again, and may proceed to the sink at any time."""
        step = place.step
        if step.group:
            return self._loop_of_group(place, sink)
        ignore = _until(self._inner_ignore(place, step), step.until)
        take = _until(self._take(place, step), step.until)
        assert take is not None
        state = self._state_of(step)
        if step.greedy:
            copy = None
            if step.until is not None:
                copy = self._ungreedy[sink.name] = self._copy(sink)
            self._add_proceed(place, state, sink, copy)
            _prefer(sink, self._take(place, step))
        else:
            state.add(Action.PROCEED, sink, self._always(place))
        state.add(Action.TAKE, state, take)
        self._add_stop_of_following(place, state)
        if ignore is not None:
            twin = self._state(step.name, Kind.NORMAL)
            twin.add(Action.TAKE, state, take)
            twin.add(Action.IGNORE, twin, ignore)
            state.add(Action.IGNORE, twin, ignore)
            self._add_stop_of_following(place, twin)
        return state

    def _loop_of_group(self, place: _Place, sink: _State) -> _State:
        again = self._state_of(place.step)
        head, state = self._middle(self._inside(place, first=False), again)
        state = self._convert(head, state)
        going_on = self._always(place)
        state.add(Action.PROCEED, sink, going_on)
        again.add(Action.PROCEED, state, going_on)
        return state

    @staticmethod
    def _inside(place: _Place, *, first: bool) -> _Place:
        steps = place.step.group
        return _Place(steps, len(steps) - 1, place.following, place.step, first)

    # -------------------------------------------------------------------------------------- what must not be there

    def _nots(self, place: _Place) -> list[tuple[Condition, str]]:
        """The not_followed_by steps right before a step, also across optional ones."""
        found = []
        steps, index = place.steps, place.index
        while index > 0:
            before = steps[index - 1]
            unwanted = before.contiguity is Contiguity.NOT_FOLLOWED_BY
            if not (before.optional or unwanted):
                break
            index -= 1
            if unwanted:
                found.append((self._take(place, before), before.name))
        return found

    def _add_stops(self, place: _Place, state: _State) -> None:
        for condition, name in self._nots(place):
            state.add(Action.PROCEED, self._stop(condition, name), condition)

    def _add_stop_of_following(self, place: _Place, state: _State) -> None:
        following = place.following
        if following is not None and following.contiguity is Contiguity.NOT_FOLLOWED_BY:
            condition = self._take(place, following)
            state.add(Action.PROCEED, self._stop(condition, following.name), condition)

    def _without_nots(self, place: _Place, sink: _State) -> _State:
        """The sink for an optional step that did take an event: the nots before it no longer matter."""
        nots = self._nots(place)
        if not nots or not place.step.optional:
            return sink
        gone = {name for _, name in nots}
        copy = self._state(sink.name, sink.kind)
        for edge in sink.edges:
            if edge.action is Action.PROCEED:
                if edge.target.kind is not Kind.STOP:
                    copy.add(edge.action, self._without_nots(place, edge.target), edge.condition)
                elif edge.target.name not in gone:
                    copy.add(edge.action, edge.target, edge.condition)
            else:
                copy.add(edge.action, copy if edge.target is sink else edge.target, edge.condition)
        return copy

    def _copy(self, state: _State) -> _State:
        copy = self._state(state.name.split(":")[0], state.kind)
        for edge in state.edges:
            copy.add(edge.action, copy if edge.target is state else edge.target, edge.condition)
        return copy

    # -------------------------------------------------------------------------------------------------- conditions

    @staticmethod
    def _take(place: _Place, step: Step) -> Condition:
        taken = step.condition
        if place.group is not None and place.group.until is not None:
            taken = Both(negate(place.group.until), taken)
        return taken

    @staticmethod
    def _always(place: _Place) -> Condition:
        if place.group is not None and place.group.until is not None:
            return negate(place.group.until)
        return ALWAYS

    def _ignore(self, place: _Place, step: Step) -> Condition | None:
        contiguity = step.contiguity
        if place.is_head_of_group:
            assert place.group is not None
            contiguity = place.group.contiguity if place.first else place.group.inner
        return self._ignored(place, step, contiguity)

    def _inner_ignore(self, place: _Place, step: Step) -> Condition | None:
        contiguity = step.inner
        if place.is_head_of_group:
            assert place.group is not None
            contiguity = place.group.inner
        return self._ignored(place, step, contiguity)

    @staticmethod
    def _ignored(place: _Place, step: Step, contiguity: Contiguity) -> Condition | None:
        """What may be passed over: nothing, what the step does not want, or anything."""
        ignored: Condition | None = None
        if contiguity is Contiguity.RELAXED:
            ignored = negate(step.condition)
        elif contiguity is Contiguity.ANY:
            ignored = ALWAYS
        return _until(ignored, None if place.group is None else place.group.until)


def _until(condition: Condition | None, until: Condition | None) -> Condition | None:
    """The condition as long as `until` has not come."""
    if condition is None or until is None:
        return condition
    return Both(negate(until), condition)


def _prefer(sink: _State, take: Condition) -> None:
    """What the greedy step before would take, the sink leaves to it."""
    for edge in sink.edges:
        edge.condition = both(edge.condition, negate(take))


def _reached(start: _State) -> set[_State]:
    """The states that can be reached without an event."""
    found: set[_State] = set()
    waiting = [start]
    while waiting:
        for edge in waiting.pop().edges:
            if edge.action is Action.PROCEED and edge.target not in found:
                found.add(edge.target)
                waiting.append(edge.target)
    return found
