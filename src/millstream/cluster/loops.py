"""Iterations of a job on the driver: plans what each loop does in an epoch.

Promises: the plan of a loop is a function of what its operators reported and of the sources in the same plan; it is
logged with the plan of the epoch. A bounded loop terminates at its limit, by its criterion, or without feedback; an
unbounded one after the end of the input, when no feedback is left and no operator waits for a timer.
Does not know: engines, what the body of a loop does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from millstream.cluster.job_events import RoundDone
from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.graph.loops import Loop, loops_of
from millstream.runtime.loops import LoopConfig, LoopProgress, LoopReport, LoopWork, Phase, merge_aggregates
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operators.loop import HeadWork
from millstream.runtime.report import TaskReport
from millstream.state.handles import Lineage

Memory = Mapping[str, Sequence[SubtaskMemory]]


class IterationTooLong(UserError):
    """An iteration has not terminated within its deadline, or not converged within its limit of rounds."""

    def __init__(self, loop: str, problem: str, feedback: int, aggregates: Mapping[str, float]) -> None:
        self.loop = loop
        values = "".join(f", {name} = {value:g}" for name, value in aggregates.items())
        super().__init__(
            f"iteration '{loop}' {problem}; the last round had {feedback} feedback records{values}",
            hint="check whether its feedback becomes empty or its criterion can be met, or raise the limit",
        )


class Loops:
    """The iterations of one job."""

    def __init__(self, loops: Sequence[Loop] = (), parallelism: Mapping[str, int] | None = None) -> None:
        """`parallelism` is that of each operator."""
        self._loops, self._parallelism = loops, parallelism or {}

    @classmethod
    def of(cls, plan: ExecutionPlan) -> Loops:
        """Return the iterations of a plan."""
        operators = ((node.id, planned) for planned in plan.vertices for node in planned.task.operators)
        return cls(loops_of(plan), {operator: planned.task.parallelism for operator, planned in operators})

    def plan(self, sources: Mapping[str, Mapping[str, Any]], memory: Memory, now: int) -> dict[str, dict[str, Any]]:
        """Plan an epoch in which the sources do what `sources` says."""
        steps: dict[str, dict[str, Any]] = {}
        for loop in self._loops:
            inputs_ended = all(sources[operator]["end"] for operator in loop.sources) and all(
                steps[name]["end"] for name in loop.after
            )
            progress = memory[loop.pairs[0][0]][0].part(LoopProgress)
            reports = [part.part(LoopReport) for operator in loop.members for part in memory[operator]]
            steps[loop.config.name] = plan_loop(loop.config, progress, reports, inputs_ended=inputs_ended, now=now)
        return steps

    def hold(self) -> dict[str, dict[str, Any]]:
        """Plan an epoch in which all loops keep their feedback."""
        return {loop.config.name: _step(Phase.HOLD, 0) for loop in self._loops}

    def work(
        self, steps: Mapping[str, Mapping[str, Any]], lineages: Mapping[str, Sequence[Lineage]]
    ) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Iterate over the operators of loops, with the work of their subtasks."""
        for loop in self._loops:
            step = steps.get(loop.config.name)
            if step is None:  # the plan was logged before the program had this loop
                continue
            work = _to_work(loop, step)
            for operator in loop.members:
                yield operator, (work,) * self._parallelism[operator]
            for head, tail in loop.pairs:
                yield head, tuple(HeadWork(_to_work(loop, step, lineage), tail) for lineage in lineages[tail])

    def measure(self, steps: Mapping[str, Mapping[str, Any]], reports: Sequence[TaskReport]) -> dict[str, RoundDone]:
        """Return what each iteration did in an accepted epoch."""
        rounds: dict[str, RoundDone] = {}
        for loop in self._loops:
            step = steps.get(loop.config.name)
            if step is None:
                continue
            members = frozenset(loop.members)
            parts = [
                memory.part(LoopReport)
                for report in reports
                for operator, memory in report.memory.items()
                if operator in members
            ]
            last = step["round"] + step.get("rounds", 1) - 1
            feedback = sum(part.feedback for part in parts)
            rounds[loop.config.name] = RoundDone(step["phase"], last, feedback, merge_aggregates(parts))
        return rounds


def plan_loop(
    config: LoopConfig, progress: LoopProgress, reports: Sequence[LoopReport], *, inputs_ended: bool, now: int
) -> dict[str, Any]:
    """Plan one loop: its phase and round, whether it has work without input, and whether it ends with the epoch."""
    feedback = sum(report.feedback for report in reports)
    aggregates = merge_aggregates(reports)
    if progress.state == "ended" or (config.bounded and progress.state == "closed"):
        return _step(Phase.ENDED, progress.round, inputs_ended=True, end=True)
    if not config.bounded:
        is_waiting = any(report.waiting for report in reports)
        step = _plan_unbounded(progress, feedback, is_waiting=is_waiting, inputs_ended=inputs_ended)
    elif progress.state == "reading":
        step = _step(Phase.READ, 0, work=inputs_ended, inputs_ended=inputs_ended, ends_round=inputs_ended)
    else:
        criteria = sum(report.criteria for report in reports)
        is_done = not feedback or (config.has_criteria and not criteria)
        is_done = is_done or (config.until is not None and config.until.is_met(aggregates))
        is_limited = config.max_rounds is not None and progress.round >= config.max_rounds
        if is_limited and config.must_converge and not is_done:
            problem = f"has not converged in {config.max_rounds} rounds"
            raise IterationTooLong(config.name, problem, feedback, aggregates)
        closes = is_done or is_limited
        phase = Phase.CLOSE if closes else Phase.ROUND
        step = _step(phase, progress.round, work=True, inputs_ended=True, ends_round=not closes, end=closes)
    if config.staleness and step["ends_round"]:
        step["rounds"] = config.rounds_from(step["round"])
    started, deadline = progress.started, config.deadline
    if step["phase"] == "round" and started is not None and deadline is not None and now - started > deadline:
        problem = f"has not terminated {deadline} ms after the end of its input, and is in round {progress.round}"
        raise IterationTooLong(config.name, problem, feedback, aggregates)
    return {**step, "aggregates": aggregates} if aggregates else step


def _plan_unbounded(progress: LoopProgress, feedback: int, *, is_waiting: bool, inputs_ended: bool) -> dict[str, Any]:
    number = progress.round
    is_done = not feedback and not is_waiting
    if progress.state == "closed" and is_done:
        return _step(Phase.ENDED, number, work=True, inputs_ended=True, end=True)
    if progress.state != "closed" and inputs_ended and progress.inputs_ended and is_done:
        return _step(Phase.CLOSE, number, work=True, inputs_ended=True)
    is_news = inputs_ended and not progress.inputs_ended
    return _step(Phase.ROUND, number, work=feedback > 0 or is_news, inputs_ended=inputs_ended)


def _step(
    phase: Phase,
    number: int,
    *,
    work: bool = False,
    inputs_ended: bool = False,
    ends_round: bool = False,
    end: bool = False,
) -> dict[str, Any]:
    return {
        "phase": phase.value,
        "round": number,
        "work": work,
        "inputs_ended": inputs_ended,
        "ends_round": ends_round,
        "end": end,
    }


def _to_work(loop: Loop, step: Mapping[str, Any], feedback: Lineage | None = None) -> LoopWork:
    return LoopWork(
        loop.config.name,
        Phase(step["phase"]),
        step["round"],
        step["ends_round"],
        step["inputs_ended"],
        step.get("aggregates", {}),
        feedback,
        step.get("rounds", 1),
    )
