"""Rescaling a running job: state is right, impossible requests are refused first, and edge cases work."""

from concurrent.futures import CancelledError
from itertools import cycle

import pytest

from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.cluster.job_events import EpochDone, RescaleDone
from millstream.cluster.rescale import Adaptive, NoSuchOperator, UnusableParallelism, rescale_graph
from millstream.common import Configuration, Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.job.job_status import JobStatus
from millstream.testing.inline_engine import InlineEngine
from millstream_chaos.jobs.keyed_job import Specification, build, write_input
from millstream_chaos.outputs.compare import find_disorder, read_lines
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, build_graph, compute_reference, run

MOST = {"pipeline.max-parallelism": "16"}


def rescaling(*path):
    """A listener that asks for one parallelism after the other, an epoch apart."""
    left = list(path)

    def listen(observation, master):
        if isinstance(observation, EpochDone) and left:
            master.rescale(left.pop(0))

    return listen


@pytest.mark.parametrize("backend", ["hashmap", "lmdb"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_do_not_depend_on_rescaling(program, backend):
    """To the max parallelism, down to one, to the current parallelism, and up again."""
    setup = Setup(PROGRAMS[program], epoch_records=5, checkpoint_every=3, backend=backend, options=MOST)
    with World() as world:
        life = run(setup, world, listen=rescaling(16, 1, 1, 7, 3))
        assert life.status is JobStatus.FINISHED, life.failure
        assert life.master.job.restarts == 0
        assert world.visible() == compute_reference(setup)
        done = [each.slots for each in life.seen if isinstance(each, RescaleDone)]
        assert len(done) >= 3


def test_a_failure_after_a_rescale_restores_a_checkpoint_of_the_old_parallelism():
    setup = Setup(PROGRAMS["keyed_timers"], epoch_records=4, checkpoint_every=100, options=MOST)
    with World() as world:
        life = run(setup, world, Faults(engine=frozenset({3, 7})), listen=rescaling(5, 2, 9))
        assert life.status is JobStatus.FINISHED
        assert life.master.job.restarts == 2
        assert world.visible() == compute_reference(setup)


def test_a_key_that_moves_twice_within_a_checkpoint_keeps_its_order_across_files(tmp_path):
    """From 2 to 3 and back again and again, with one commit at the end: a file never has lines from before and after
    those that another subtask wrote."""
    specification = Specification(str(tmp_path), options={"millstream.epoch.max-records": "100"})
    write_input(specification.input, 1, records=2_000, keys=40, files=4)
    specification.output.mkdir()
    handles = []
    wanted = cycle([3, 2])

    def submit(graph, configuration, name, listeners=()):
        def listen(observation):
            if isinstance(observation, EpochDone) and handles:
                handles[0].rescale(next(wanted))

        running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=[*listeners, listen])
        handles.append(local.LocalHandle(running))
        return JobClient(handles[0])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "submit", submit)
        build(specification).execute("to and fro")
    assert not list(find_disorder(read_lines(specification.output)))


def test_frequent_rescales_do_not_delay_checkpoints():
    setup = Setup(PROGRAMS["keyed_timers"], epoch_records=2, checkpoint_every=3, options=MOST)
    with World() as steady, World() as restless:
        before = len(run(setup, steady).checkpoints)
        after = len(run(setup, restless, listen=rescaling(*[2, 3] * 20)).checkpoints)
        assert after >= before - 1 > 1


def graph(**operators):
    env = StreamExecutionEnvironment(Configuration())
    env.set_parallelism(2).set_max_parallelism(8)
    stream = env.from_collection([1, 2, 3], Types.LONG()).uid("numbers")
    keyed = stream.key_by(lambda value: value).map(lambda value: value, Types.LONG()).uid("keyed")
    keyed.map(lambda value: value, Types.LONG()).uid("fixed").set_parallelism(1).print()
    return env._graph()


def parallelisms(made):
    return {node.uid: node.parallelism for node in made.nodes if node.uid is not None}


def test_a_number_applies_to_operators_without_their_own_parallelism():
    before = graph()
    after = rescale_graph(before, 5)
    assert parallelisms(after) == {**parallelisms(before), "keyed": 5}
    assert [node.operator for node in after.nodes] == [node.operator for node in before.nodes]
    assert {node.max_parallelism for node in after.nodes} == {8}


def test_a_mapping_applies_permanently_to_the_operators_it_names():
    after = rescale_graph(graph(), {"fixed": 3, "keyed": 4})
    assert parallelisms(after)["fixed"] == 3
    assert parallelisms(after)["keyed"] == 4
    again = rescale_graph(after, 6)
    assert parallelisms(again)["fixed"] == 3


@pytest.mark.parametrize(
    ("wanted", "error", "why"),
    [
        (9, UserError, "8"),
        (0, UnusableParallelism, "0"),
        (True, UnusableParallelism, "True"),
        ({"keyed": 1.5}, UnusableParallelism, "1.5"),
        ({"other": 2}, NoSuchOperator, "no operator has the uid or name 'other'"),
    ],
)
def test_an_impossible_parallelism_is_refused_before_the_job_stops(wanted, error, why):
    with pytest.raises(error, match=why):
        rescale_graph(graph(), wanted)


def test_the_max_parallelism_itself_can_run():
    assert parallelisms(rescale_graph(graph(), 8))["keyed"] == 8


def test_a_request_that_is_not_carried_out_is_cancelled():
    orders = []

    def listen(observation, master):
        if isinstance(observation, EpochDone) and not orders:
            orders.extend([master.rescale(3), master.rescale(4)])

    setup = Setup(PROGRAMS["tumbling"], epoch_records=20, options=MOST)
    with World() as world:
        life = run(setup, world, listen=listen)
        late = life.master.rescale(2)
    with pytest.raises(CancelledError):
        orders[0].result(0)
    assert orders[1].result(0) == 4
    with pytest.raises(CancelledError):
        late.result(0)


def test_the_graph_keeps_its_program_and_settings():
    setup = Setup(PROGRAMS["broadcast"], parallelism=3)
    with World() as world:
        made = build_graph(setup, world)
    assert rescale_graph(made, 3) == made


def run_rule(rule, looks):
    """The parallelisms that the rule asks for; `looks` are pairs of time and number of slots."""
    current, asked = 2, []
    for now, slots in looks:
        if rule.should_query(now):
            rule = rule.after(slots, now)
            wanted = rule.target(now, current)
            if wanted is not None:
                rule, current = rule.after_rescale(now), wanted
                asked.append((now, wanted))
    return asked


def test_the_adaptive_rule_waits_until_the_number_of_slots_is_stable():
    rule = Adaptive(most=8, stable_for=10_000, rest=0)
    looks = [(0, 2), (5_000, 3), (12_000, 4), (16_000, 4), (22_000, 4), (30_000, 4)]
    assert run_rule(rule, looks) == [(22_000, 4)]


def test_the_adaptive_rule_stays_within_its_bounds_and_has_a_cooldown():
    rule = Adaptive(most=8, stable_for=1_000, rest=30_000)
    looks = [(0, 99), (2_000, 99), (4_000, 1), (6_000, 1), (31_000, 1), (33_000, 1)]
    assert run_rule(rule, looks) == [(2_000, 8), (33_000, 1)]


def test_a_cluster_without_slots_changes_nothing():
    assert run_rule(Adaptive(most=8, stable_for=0, rest=0), [(0, None), (5_000, 0), (9_000, None)]) == []
